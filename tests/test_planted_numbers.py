"""Planted transformers that give a number: the log-odds of a plant of two classes, and nothing else of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedmap.calibration.choice import LATER, kind_of
from heedmap.calibration.families import draw, families, make
from heedmap.calibration.measure import _texts
from heedmap.calibration.numbers import FAMILIES, of_one_number
from heedmap.calibration.plants import is_cue
from heedmap.calibration.transformer_families import FAMILIES as OF_CLASSES
from heedmap.calibration.transformer_routes import BY_HAND
from heedmap.experiments.rates import OF_NUMBER, packaged_rates
from heedmap.experiments.rule import answer, map_numbers

NAMES = {family.name: family for family in FAMILIES}


def small(name, seed=3):
    (encoder,) = NAMES[name].makers
    return replace(draw(NAMES[name], encoder, seed), texts=30, length=10)


def test_the_output_is_the_log_odds_of_the_two_classes():
    family = next(f for f in OF_CLASSES if f.name == "transformer, weights by value")
    planted = make(replace(draw(family, BY_HAND, 1), classes=2, texts=8, length=10))
    batch = planted.model.batch(planted.split.tokens, range(8))
    logits = planted.model.logits(batch)
    number = of_one_number(planted.model)
    outputs = number.logits(number.batch(planted.split.tokens, range(8)))
    assert number.classes == ["points"]
    assert "classes" not in number.capabilities
    assert torch.allclose(outputs[:, 0], logits[:, 1] - logits[:, 0], rtol=1e-4, atol=1e-4)


def test_numbers_are_of_many_sizes_and_of_a_kind_that_chose_no_threshold():
    plant = small("number, cue attended")
    planted = make(plant)
    outputs = planted.model.logits(planted.model.batch(planted.split.tokens, range(30)))[:, 0]
    assert len(np.unique(outputs.numpy().round(3))) > 8
    assert kind_of(plant) == OF_NUMBER
    assert OF_NUMBER in LATER
    assert all(name in families() for name in NAMES)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("number, weights by value", "yes"),
        ("number, all words but the cue attended", "no"),
        ("number, uniform weights", "no"),
    ],
)
def test_the_rule_tells_right_from_wrong_maps_of_numbers(name, said):
    plant = small(name)
    planted = make(plant)
    assert planted.admitted, planted.why_not
    assert any(is_cue(word.strip()) for word in planted.split.tokens[0])
    texts = _texts(plant, planted)
    columns = {n: texts[n].to_numpy().astype(np.float64) for n in texts.column_names}
    assert {*columns["predicted"].tolist()} == {0.0, 1.0}
    outputs = planted.model.logits(planted.model.batch(planted.split.tokens, range(30)))[:, 0]
    above = (outputs - outputs.mean()) / outputs.std(unbiased=False)
    assert columns["above"] == pytest.approx(above.numpy(), abs=1e-4)
    assert answer(map_numbers(columns), packaged_rates().thresholds) == said
