"""A trained model and its arrays: what is asked of the arrays has the numbers of the model's own audit."""

import numpy as np
import pytest
import torch
from traced_texts import EXACT, traced

import heedmap as hm

READ = ("leave_one_out", "highlights", "alternatives", "opposing_mass", "necessity")
OPTIONS = {"instances": 60, "permutations": 20, "progress": False}


@pytest.fixture(scope="module")
def audits(reviews):
    """The audit of a model trained on reviews, and that of its weights, states and head as arrays."""
    run = hm.train(reviews, encoder="lstm", hidden_size=16, epochs=3, progress=False)
    model, split = run.model, reviews.splits["test"]

    @torch.no_grad()
    def predict(instances):
        trace = model.trace(model.batch(instances, range(len(instances))))
        sizes = [len(names) for names in instances]
        weights = [row[:n] for row, n in zip(trace.attention[:, 0], sizes, strict=True)]
        return trace.logits.softmax(-1), weights

    with torch.no_grad():
        attention, _, states = traced(model, split.tokens)
        arrays = hm.from_arrays(
            attention,
            values=states,
            weight=model.decoder.weight,
            bias=model.decoder.bias,
            items=split.tokens,
            labels=split.labels,
            classes=model.classes,
            predictions=run.predict_proba([" ".join(text) for text in split.tokens]),
            predict=predict,
        )
    return hm.audit(run, **OPTIONS), hm.audit(arrays, **OPTIONS)


@pytest.mark.slow
def test_the_arrays_of_a_trained_model_give_its_predictions(audits):
    own, arrays = audits
    assert arrays.about["prediction_difference"] < 1e-6
    assert own["instances"]["key"].size == arrays["instances"]["key"].size == 60
    assert (
        own["instances"]["tokens"].map(list).tolist()
        == arrays["instances"]["tokens"].map(list).tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EXACT, *READ])
def test_every_table_of_the_arrays_of_a_trained_model_is_the_models_own(audits, name):
    own, arrays = audits
    assert (name in own) == (name in arrays), "necessity needs other trainings"
    if name not in own:
        return
    columns = [c for c in arrays[name].columns if c in own[name].columns and c != "key"]
    assert len(columns) > 2
    for column in columns:
        expected, got = (
            own.tables[name][column].to_pylist(),
            arrays.tables[name][column].to_pylist(),
        )
        kinds = {type(x) for x in expected} - {type(None)}
        if kinds & {float, list}:
            for row, (x, y) in enumerate(zip(expected, got, strict=True)):
                assert same(x, y), (column, row, x, y)
        else:
            assert got == expected, column


def same(x, y):
    """Whether two values of a table agree within rounding; undefined ones only with each other."""
    if x is None or y is None or isinstance(x, str):
        return x == y
    if isinstance(x, list) and x and isinstance(x[0], list | str):
        return len(x) == len(y) and all(same(*pair) for pair in zip(x, y, strict=True))
    x, y = (np.array(value, dtype=float) for value in (x, y))
    return x.shape == y.shape and np.allclose(x, y, atol=2e-5, rtol=1e-4, equal_nan=True)


@pytest.mark.slow
def test_the_bottom_lines_say_the_same(audits):
    own, arrays = audits
    assert arrays.bottom_line.answer == own.bottom_line.answer
    said = [finding.key for finding in arrays.findings]
    assert {"skill", "needed", "sufficient", "permutation", "adversary"} <= {*said}
    for finding in arrays.findings:
        match = next(f for f in own.findings if f.key == finding.key)
        assert finding.value == pytest.approx(match.value, abs=1e-4, nan_ok=True), finding.key
