"""Where the measures of importance differ by a factor of three, the card says so, and why that can be."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_audits import Elements, make_audit, printed
from made_tables import table

from heedmap.experiments.methods.disagreement import disagreement
from heedmap.experiments.registry import make_findings
from heedmap.experiments.results import Results
from heedmap.report.page import page
from heedmap.settings.audit import AuditSettings

CLOSED, OPEN = AuditSettings(), AuditSettings(gradient_path="open")
N = 12
REASON = {
    "spread": "spreads the importance over more words",
    "saturated": "no word's absence changes the prediction",
    "opposing_mass": "of words against the answer",
    "path": "the gradient holds the attention fixed",
    "incomplete": "integrated gradients miss what they should add up to",
    "always": "leave-one-out takes a word away",
}


def tables(found, *, largest=(0.9, 0.9, 0.9), change=0.4, against=0, sure=0.8, error=0.0):
    """Tables of texts of four words; with masses by leave-one-out, gradient, integrated gradients.

    Of the four words `against` speak against the answer, each with the largest effect `change`.
    """
    names = ("leave_one_out", "gradient", "integrated_gradients")
    signed = [-change] * against + [change] * (4 - against)
    return {
        "instances": table(
            tokens=[[str(i), "b", "c", "d"] for i in range(N)],
            n_tokens=[4] * N, label=[0] * N, predicted=[0] * N, probabilities=[[sure, 1 - sure]] * N,
        ),
        "leave_one_out": table(importance=[[change] * 4] * N, signed=[signed] * N),
        "integrated_gradients": table(
            importance=[[0.1] * 4] * N, completeness_error=[error] * N
        ),
        "importance_mass": table(
            **{f"mass_{name}": [x] * N for name, x in zip(names, found, strict=True)},
            **{f"largest_{name}": [x] * N for name, x in zip(names, largest, strict=True)},
        ),
    }  # fmt: skip


def said(made, settings=OPEN):
    return disagreement(Results(made, settings, ["a", "b"]))


def reasons(text):
    return {name for name, words in REASON.items() if words in text}


def test_below_a_factor_of_three_nothing_is_said():
    assert said(tables((0.59, 0.2, 0.3))) == ""
    text = said(tables((0.61, 0.2, 0.3)))
    assert text.startswith(
        "the measures disagree (leave-one-out 0.61, integrated gradients 0.30, the gradient 0.20, on the same "
        "12 texts), which can be because "
    )


def test_a_measure_that_finds_nothing_disagrees_too():
    assert "the gradient 0.00" in said(tables((0.3, 0.0, 0.3)))


@pytest.mark.parametrize(
    ("options", "settings", "found", "wanted"),
    [
        ({}, OPEN, (0.9, 0.1, 0.5), set()),
        ({}, CLOSED, (0.9, 0.1, 0.5), {"path"}),
        ({}, CLOSED, (0.9, 0.5, 0.1), set()),  # the gradient is neither the most nor the least
        ({"largest": (0.9, 0.4, 0.9)}, OPEN, (0.9, 0.1, 0.5), {"spread"}),
        ({"change": 0.01}, OPEN, (0.1, 0.9, 0.5), {"saturated"}),
        ({"change": 0.01}, OPEN, (0.5, 0.9, 0.1), set()),
        ({"against": 1}, OPEN, (0.1, 0.9, 0.5), {"opposing_mass"}),
        ({"error": 0.2}, OPEN, (0.5, 0.9, 0.1), {"incomplete"}),
        ({"error": 0.2}, OPEN, (0.1, 0.9, 0.5), set()),
        (
            {"change": 0.01, "against": 2},
            CLOSED,
            (0.1, 0.9, 0.5),
            {"saturated", "opposing_mass", "path"},
        ),
    ],
)
def test_only_reasons_that_the_tables_show_are_named(options, settings, found, wanted):
    assert reasons(said(tables(found, **options), settings)) == {*wanted, "always"}


def test_of_sure_predictions_it_is_said_that_they_are():
    unsure, sure = (said(tables((0.1, 0.9, 0.5), change=0.01, sure=p)) for p in (0.9, 0.999))
    assert "saturated" not in unsure
    assert "(100% are saturated, from 0.99)" in sure


def test_a_window_of_one_word_which_has_no_number_hides_no_reason():
    made = tables((0.1, 0.9, 0.5), change=0.01)
    made["leave_one_out"] = table(importance=[[math.nan, 0.01, 0.01]] * N)  # pooled: without signs
    assert reasons(said(made)) == {"saturated", "always"}


def test_only_texts_that_every_measure_has_are_compared():
    made = tables((0.6, 0.5, 0.5))
    values = [0.1] * 4 + [0.6] * 5 + [math.nan] * 3
    at = made["importance_mass"].column_names.index("mass_integrated_gradients")
    made["importance_mass"] = made["importance_mass"].set_column(
        at, "mass_integrated_gradients", [values]
    )
    assert said(made) == ""
    assert "same 6 texts" in said(_first_differ(made, 0.1, 6))


def _first_differ(made, value, count):
    at = made["importance_mass"].column_names.index("mass_integrated_gradients")
    values = [value] * count + [math.nan] * (N - count)
    return {
        **made, "importance_mass": made["importance_mass"].set_column(at, "mass_integrated_gradients", [values])
    }  # fmt: skip


def test_of_four_texts_nothing_is_said():
    assert said(_first_differ(tables((0.6, 0.5, 0.5)), 0.1, 4)) == ""


def test_it_is_said_once_on_card_and_page():
    audit = make_audit()
    found = tables((0.9, 0.1, 0.5))["importance_mass"]
    made = {**audit.tables, "importance_mass": found.take(np.arange(40) % N)}
    findings = make_findings(made, audit.settings.audit, audit.classes)
    shown = replace(audit, tables=made, findings=findings)
    for text in (printed(shown, 100), " ".join(Elements(page(shown)).text)):
        assert " ".join(text.replace("│", " ").split()).count("the measures disagree (") == 1
