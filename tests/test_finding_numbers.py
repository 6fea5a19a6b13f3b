"""Every finding of every kind of model has a key of its own, and the numbers of its own texts under it."""

import numpy as np
import pytest
from tiny_audits import check_numbers, tiny_audit
from tiny_regressions import rated_texts, saved_number_model
from wording import refused

import heedmap as hm
from heedmap.errors import NamedOnce
from heedmap.experiments.findings import Finding, reworded
from heedmap.experiments.registry import (
    Experiment,
    make_findings,
    numbers_by_finding,
    registered,
)
from heedmap.nouns import BAGS
from heedmap.report.notebook_charts import Figures
from heedmap.report.text_data import pack_texts


@pytest.mark.parametrize("kind", ["own", "pairs", "sentences", "transformer"])
def test_a_findings_value_is_that_of_the_numbers_under_its_key(kind):
    check_numbers(tiny_audit(kind))


@pytest.mark.filterwarnings("ignore:.*texts")
def test_so_it_is_of_a_model_that_gives_a_number(tmp_path):
    texts, labels = rated_texts(8)
    run = hm.open_model(saved_number_model(tmp_path / "model"), texts, labels=labels)
    check_numbers(hm.audit(run, permutations=5, progress=False))


def with_question(monkeypatch, **parts):
    """Register a question of another package that reads the table of instances."""
    other = Experiment("other", None, **parts)
    every = {**registered(), "other": other}
    for module in ("experiments.registry", "report.text_data", "report.figures"):
        monkeypatch.setattr(f"heedmap.{module}.registered", lambda: every)


def told(results, *keys):
    numbers = np.linspace(0, 1, len(results.predicted))
    words = {"question": "?", "measure": "a share", "meaning": "1 = all"}
    return [results.finding(key, "fraction", numbers, {}, **words) for key in keys]


@pytest.mark.parametrize(
    "made",
    [lambda results: told(results, "permutation"), lambda results: told(results, "new", "new")],
)
def test_two_findings_of_one_key_are_refused(monkeypatch, made):
    audit = tiny_audit("own")
    with_question(monkeypatch, findings=made)
    tables = {**audit.tables, "other": audit.tables["instances"]}
    for make in (make_findings, numbers_by_finding):
        with refused("keys of findings", "twice", "rename"):
            make(tables, audit.settings.audit, audit.classes)


def test_a_finding_that_is_made_by_hand_is_refused_too(monkeypatch):
    audit = tiny_audit("own")
    (own,) = (finding for finding in audit.findings if finding.key == "uniform")
    with_question(monkeypatch, findings=lambda results: [own])
    tables = {**audit.tables, "other": audit.tables["instances"]}
    with refused("'uniform' twice"):
        make_findings(tables, audit.settings.audit, audit.classes)


def test_facts_maps_and_figures_of_one_name_are_refused(monkeypatch):
    audit = tiny_audit("own")
    tables = {**audit.tables, "other": audit.tables["instances"]}
    with_question(monkeypatch, facts=lambda row: [("TVD, even weights", 1.0)])
    with refused("facts of a text", "'TVD, even weights' twice"):
        pack_texts(tables, audit.classes, [])
    gradient = registered()["gradient"]
    with_question(monkeypatch, heat_maps=gradient.heat_maps)
    with refused("heat maps of a text", "'gradient' twice"):
        pack_texts(tables, audit.classes, [])
    with_question(monkeypatch, figures=registered()["permutation"].figures)
    audit.tables["other"] = audit.tables["instances"]
    with refused("figures", "twice"):
        list(Figures(audit))


def test_a_name_stands_once_and_pairs_keep_their_order():
    kept = NamedOnce("things", [("b", 1), ("a", 2)])
    assert list(kept.items()) == [("b", 1), ("a", 2)]
    with refused("things", "'a' twice", "rename"):
        kept["a"] = 3
    assert kept["a"] == 2


def test_texts_left_out_for_two_reasons_that_sound_alike_are_all_counted():
    finding = Finding(
        key="k", kind="share", question="?", measure="m", value=0.5, low=0.4, high=0.6, n=3, reading="",
        left_out={"of one word": 2, "of one token": 3}, level="mixed", meaning="", distinct=3,
    )  # fmt: skip
    assert reworded(finding, BAGS, []).left_out == {"of one item": 5}
