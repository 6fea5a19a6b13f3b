"""Models whose answer is known, through a whole audit: what misled earlier verdicts no longer does."""

import numpy as np
import pytest
from made_rates import rates

from heedmap.calibration.by_hand import classifier_by_hand, planted_by_hand
from heedmap.calibration.plants import Design, Plant, vocabulary_of, write_texts
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.registry import make_findings, registered
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings

SETTINGS = AuditSettings(descent_steps=0, curve=(0.01,))
TABLES = (
    "instances", "gradient", "leave_one_out", "integrated_gradients", "importance_mass", "baselines",
    "agreement", "opposing_mass", "permutation", "adversary", "smallest_change", "highlights", "alternatives",
)  # fmt: skip
OF_THE_WORDS = ("needed", "sufficient")  # findings that the bottom line rests on


def verdict(model, split):
    """The findings by key, and the bottom line."""
    evidence = AuditContext(model, split, SETTINGS, registered())
    tables = {name: evidence.table(name) for name in TABLES}
    findings = make_findings(tables, SETTINGS, model.classes, rates=rates())
    run = RunSettings(
        fingerprint="", data=DataSettings(source="x"), model=ModelSettings(), audit=SETTINGS
    )
    audit = AuditResult(run, model.classes, tables, findings, {})
    return {f.key: f for f in findings}, bottom_line(audit, rates())


def planted(kind, texts=60, **options):
    plant = Plant("a family", "by hand", 0, texts=texts, **options)
    design = Design(kind, 1.0 if kind in ("faithful", "proportional") else 0.0)
    split = write_texts(plant, plant.texts, "test", design)
    return planted_by_hand(plant, design, split, vocabulary_of(plant, split)), split


@pytest.mark.parametrize("classes", [2, 5])
def test_random_attention_over_states_that_all_carry_the_text_is_not_right(classes):
    found, line = verdict(*planted("irrelevant", classes=classes, length=10, noise=0.0))
    assert found["permutation"].value == pytest.approx(0, abs=1e-6)
    assert found["mass_leave_one_out"].relative.share < 0.3
    for key in OF_THE_WORDS:
        assert found[key].level != "for"
    # Among ten words it is on the one that decides in some of the texts.
    assert line.answer in ("no", "in part")


def test_attention_that_agrees_with_the_gradient_because_it_is_a_factor_of_it_does_not_speak_for_the_map():
    """Each word carries the label alike, and the attention is random: tau with the gradient is 1.000."""
    words = [f"{c}{k}" for c in "ab" for k in range(40)]
    vocabulary, rng = Vocabulary(words), np.random.default_rng(0)
    values, first = np.zeros((len(vocabulary), 3, 2)), len(vocabulary) - len(words)
    values[first : first + 40, 0, 0] = values[first + 40 :, 0, 1] = 3.0
    scores = np.stack([rng.uniform(0, 4, len(values)), np.zeros(len(values))], 1)
    model = classifier_by_hand(Plant("each word", "none", 0), vocabulary, values, scores)
    labels = np.arange(40) % 2
    tokens = [[f"{'ab'[label]}{k}" for k in rng.permutation(40)[:12]] for label in labels]
    found, line = verdict(model, Split([str(i) for i in range(40)], tokens, labels))
    agreement = found["agreement_gradient"]
    assert agreement.value == pytest.approx(1.0)
    # So it is for any shuffle of the weights, and nothing is left to attain.
    assert agreement.relative.chance == pytest.approx(1.0)
    assert agreement.relative.share == pytest.approx(0.0)
    assert found["mass_leave_one_out"].n == 0  # no word's absence changes anything
    # What the gradient finds under the map is what it finds under any shuffle: 1/n would have called it all.
    gradient = found["mass_gradient"]
    assert gradient.value == pytest.approx(gradient.relative.ceiling)
    assert gradient.value > 1.5 / 12
    assert gradient.relative.share == pytest.approx(0.0, abs=1e-6)
    # The highlighted words suffice, but so do any others, and without them nothing is lost.
    assert found["sufficient"].value == pytest.approx(1.0)
    assert found["sufficient"].by_class["0"].chance == pytest.approx(1.0)
    assert found["needed"].value == pytest.approx(0.0, abs=1e-6)
    assert found["needed"].level == "against"
    assert line.answer == "no"
    assert line.because == "no small set of words makes the answer"


def test_confidence_does_not_change_the_answer_as_it_did_the_reading_of_the_adversary():
    (calm, one), (sure, other) = (
        verdict(*planted("faithful", margin=m, noise=0.0)) for m in (4.0, 25.0)
    )
    assert calm["adversary"].value < 0.3 < 0.6 < sure["adversary"].value
    for key in ("mass_leave_one_out", "smallest_change", "agreement_gradient"):
        assert calm[key].relative.share == pytest.approx(sure[key].relative.share, abs=1e-3), key
    for key in OF_THE_WORDS:  # shares of the lead, whatever the lead is
        assert calm[key].value == pytest.approx(sure[key].value, abs=0.05), key
        assert calm[key].level == sure[key].level == "for"
    assert one.answer == other.answer == "yes"


def test_a_map_on_the_one_word_that_decides_is_right_though_its_tau_is_low():
    """e^5.6 against 14 other words: about .95 of the weight. A tau of .7 cannot be had: √(2 / 15) is .37."""
    model, split = planted("faithful", sharpness=5.6, noise=0.0)
    found, line = verdict(model, split)
    (trace,) = AuditContext(model, split, SETTINGS, registered()).traces
    weight = float(trace.heatmap.amax(-1).mean())
    assert weight == pytest.approx(0.95, abs=0.01)
    tau = found["agreement_gradient"]
    assert tau.value < 0.45
    assert tau.relative.ceiling < 0.45
    assert tau.relative.share == pytest.approx(1.0, abs=0.02)
    assert found["mass_leave_one_out"].value == pytest.approx(weight, abs=0.01)
    assert {found[key].level for key in OF_THE_WORDS} == {"for"}
    assert line.answer == "yes"


@pytest.mark.parametrize("kind", ["reversed", "uniform"])
def test_a_map_that_highlights_nothing_gets_a_no_and_one_that_passes_the_test_is_named(kind):
    found, line = verdict(*planted(kind, noise=0.0))
    assert {found[key].level for key in OF_THE_WORDS} == {"against"}
    assert line.answer == "no"
    assert line.because.startswith("it highlights nothing")
    assert line.instead.startswith("show leave-one-out")
    assert "in 60 of 60 texts" in line.instead


def test_a_map_on_the_neighbours_of_what_decides_gets_a_no():
    found, line = verdict(*planted("deceptive"))
    assert found["sufficient"].level == "against"
    assert found["needed"].level != "for"
    assert line.answer == "no"
    assert line.because == "words other than those that it highlights make the answer"
