import json
import math

import pyarrow as pa
import pytest

from heedmap.experiments.findings import to_json
from heedmap.experiments.levels import BANDS, UNJUDGED, grade
from heedmap.experiments.registry import make_findings
from heedmap.settings.audit import AuditSettings


def tables(taus, tokens=None, predicted=None):
    n = len(taus)
    tokens = tokens or [9] * n
    agreement = {f"{x}_attention_{m}": taus for x in ("tau", "p") for m in
                 ("gradient", "leave_one_out", "integrated_gradients")}  # fmt: skip
    agreement |= {f"{x}_gradient_leave_one_out": taus for x in ("tau", "p")}
    return {
        "instances": pa.table(
            {
                "label": [0, 1] * (n // 2),
                "predicted": predicted or [0, 1] * (n // 2),
                "n_tokens": tokens,
            }
        ),
        "integrated_gradients": pa.table(
            {
                "importance": [[1.0]] * (n - 1) + [None],
                "completeness_error": [1.5, 0.5, *[0.01] * (n - 3), None],
            }
        ),
        "agreement": pa.table(agreement),
    }


def test_a_reading_needs_the_whole_interval_in_one_band():
    assert grade("skill", 0.6, 0.55, 0.7) == ("good", "for")
    words, level = grade("skill", 0.5, 0.4, 0.6)
    assert words == "between “modest” and “good”"
    assert level == "mixed"
    assert grade("skill", 0.5, 0.0, 0.6) == (
        "between “too weak to explain” and “good”",
        "cannot tell",
    )
    assert grade("skill", math.nan, math.nan, math.nan) == ("undefined", "cannot tell")
    assert grade("tau", 0.9, 0.8, 1.0) == (UNJUDGED, "for comparison")  # no chance level is known


LEAST = 1e-9


@pytest.mark.parametrize(
    ("kind", "edge", "above", "below"),
    [
        ("skill", 0.5, "good", "modest"),
        ("skill", 0.1, "modest", "too weak to explain"),
        ("words", 0.7, "most of the attention falls on the words", "a good part falls on special tokens"),
        (
            "words", 0.3, "a good part falls on special tokens",
            "most of the attention falls on special tokens",
        ),
        ("identified", 0.99, "all of it reaches the layer's output", "a part of it cancels out"),
        ("identified", 0.8, "a part of it cancels out", "much of it cancels out"),
        ("auc", 0.9, "finds these words", "often finds these words"),
        ("auc", 0.7, "often finds these words", "seldom finds these words"),
        ("auc", 0.55, "seldom finds these words", "no better than chance"),
    ],
)  # fmt: skip
def test_a_band_begins_at_its_edge(kind, edge, above, below):
    """docs/verdict.md lists these edges."""
    assert grade(kind, edge, edge, edge)[0] == above
    assert grade(kind, edge - LEAST, edge - LEAST, edge - LEAST)[0] == below
    assert grade(kind, edge, edge - LEAST, edge)[0] == f"between “{below}” and “{above}”"
    levels = {"good": "for", "modest": "mixed", "too weak to explain": "against"}
    assert grade(kind, edge, edge, edge)[1] == levels.get(above, "for comparison")


@pytest.mark.parametrize("kind", BANDS)
def test_bands_descend_to_everything(kind):
    edges = [edge for edge, _, _ in BANDS[kind]]
    assert edges == sorted(edges, reverse=True)
    assert edges[-1] == -math.inf


def test_undefined_instances_are_left_out_and_counted_by_reason():
    taus = [0.5] * 6 + [math.nan] * 4
    found = make_findings(tables(taus, tokens=[9] * 8 + [1, 1]), AuditSettings(), ["a", "b"])
    by_key = {f.key: f for f in found}
    gradient = by_key["agreement_gradient"]
    assert gradient.n == 6
    assert gradient.left_out == {
        "undefined: one token": 2,
        "undefined: a measure is the same for all tokens": 2,
    }
    sampled = by_key["agreement_integrated_gradients"]
    assert sampled.left_out["not sampled for integrated gradients"] == 1
    for finding in (gradient, sampled):
        assert finding.n + sum(finding.left_out.values()) == 10


@pytest.mark.parametrize(
    ("right", "of", "level", "words"),
    [
        (1000, 2000, "against", "too weak to explain"),  # as the commonest class
        (0, 40, "against", "too weak to explain"),
        (20, 40, "cannot tell", "between “too weak to explain” and “modest”"),
        (1300, 2000, "mixed", "modest"),
        (2000, 2000, "for", "good"),
    ],
)
def test_a_model_is_worth_explaining_where_it_beats_the_commonest_class(right, of, level, words):
    """Two classes of like size; the first texts of each are told right."""
    predicted = [i % 2 if i < right else 1 - i % 2 for i in range(of)]
    found = make_findings(tables([0.5] * of, predicted=predicted), AuditSettings(), ["a", "b"])[0]
    assert found.key == "skill"
    assert found.value == right / of
    assert (found.level, found.reading) == (level, words)


def test_numbers_that_are_not_defined_are_null_in_json():
    found = make_findings(tables([math.nan] * 10), AuditSettings(), ["a", "b"])
    values = {v["key"]: v for v in to_json(found)}
    assert values["agreement_gradient"]["value"] is None
    assert values["agreement_gradient"]["n"] == 0
    json.dumps(list(values.values()), allow_nan=False)


def test_a_significant_reverse_order_is_told_and_nothing_is_told_of_nothing():
    found = {f.key: f for f in make_findings(tables([-0.5, 0.5] * 10), AuditSettings(), ["a", "b"])}
    # In these tables p is tau: every negative one is "significant".
    assert found["agreement_gradient"].meaning.endswith(
        "50% of the texts significant at .05, 50% in the reverse order"
    )
    none = {f.key: f for f in make_findings(tables([math.nan] * 8), AuditSettings(), ["a", "b"])}
    assert none["agreement_gradient"].n == 0
    assert "significant" not in none["agreement_gradient"].meaning


def test_the_card_says_for_how_many_texts_integrated_gradients_do_not_add_up():
    """Of 19 sampled texts one is off by 1.5 log-odds and one by .5."""
    found = {f.key: f for f in make_findings(tables([0.5] * 20), AuditSettings(), ["a", "b"])}
    said = found["agreement_integrated_gradients"].meaning
    assert "by more than 0.1 log-odds in 11% of the texts, by more than 1 in 5%" in said
    assert "log-odds" not in found["agreement_gradient"].meaning
