"""Texts without labels: whether a model predicts well cannot be told, and all else is asked as ever."""

import json

import numpy as np
import pandas as pd
import pytest
from made_audits import Elements, printed
from tiny_transformers import tiny_model, tiny_tokenizer
from wording import refused, warned

import heedmap as hm
from heedmap.data.unlabelled import read_unlabelled
from heedmap.experiments.registry import make_findings
from heedmap.report.examples import choose_examples
from heedmap.report.page import page
from heedmap.settings.data import DataSettings

FEW = {"permutations": 3, "instances": 12}
WORDS = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]


def rows(labels: bool) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, n)) for n in [1, 2, *rng.integers(3, 9, 14)]]
    return [
        {"text": text, "id": f"t{i}", **({"label": i % 2} if labels else {})}
        for i, text in enumerate(texts)
    ]


def write(path, records):
    path.write_text("\n".join(map(json.dumps, records)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT, texts with and without labels."""
    root = tmp_path_factory.mktemp("unlabelled")
    tiny_model("bert").save_pretrained(root / "bert")
    tiny_tokenizer("bert").save_pretrained(root / "bert")
    write(root / "labelled.jsonl", rows(labels=True))
    write(root / "unlabelled.jsonl", rows(labels=False))
    return root


@pytest.fixture(scope="module")
def audit(folder):
    with warned("no label column", "text, id", "--label-column"):
        run = hm.open_model(folder / "bert", folder / "unlabelled.jsonl", out=folder / "run")
    return hm.audit(run, **FEW)


def test_all_tables_are_those_of_the_same_texts_with_labels_but_for_the_labels(folder, audit):
    labelled = hm.audit(
        hm.open_model(folder / "bert", folder / "labelled.jsonl", out=folder / "labelled"), **FEW
    )
    assert audit.keys() == labelled.keys()
    for name in audit:
        known, unknown = labelled[name], audit[name]
        if name == "instances":
            assert unknown["label"].isna().all()
            assert set(known["label"]) == {0, 1}
            known, unknown = known.drop(columns="label"), unknown.drop(columns="label")
        pd.testing.assert_frame_equal(unknown, known)
    skill, *others = audit.findings
    assert others == labelled.findings[1:]
    assert (skill.key, skill.level, skill.n) == ("skill", "cannot tell", 0)
    assert skill.left_out == {"no label": 12}


def test_what_cannot_be_told_is_said_and_does_not_decide_the_bottom_line(audit):
    others = make_findings(audit.tables, audit.settings.audit, audit.classes, audit.settings.model)
    assert np.isnan(others[0].value)
    for shown in (printed(audit, 100), " ".join(Elements(page(audit)).text)):
        said = " ".join(shown.replace("│", " ").split())
        assert "the texts have no labels" in said
        assert "cannot tell: cannot be told" not in said
        assert "left out: no label: 12" in said.lower()
        assert "nan" not in said.lower().split()
    assert "predict" not in audit.bottom_line.because


def test_no_text_is_called_right_or_wrong(audit):
    texts = Elements(page(audit)).text
    assert "right" not in texts
    assert "wrong" not in texts
    titles = [example.title for example in choose_examples(audit.tables, audit.classes)]
    assert titles
    assert "Sure and wrong" not in titles


def test_notebook_and_figures_are_drawn(audit):
    assert "the texts have no labels" in audit._repr_html_()
    assert len(list(audit.figures)) > 5
    assert "no labels" in repr(audit.run.corpus)
    assert "no labels" in audit.run.corpus.splits["test"]._repr_html_()
    assert "–" in audit.run.corpus._repr_html_()


def test_the_run_is_opened_again_and_its_audit_is_the_same(folder, audit):
    again = hm.open_run(folder / "run")
    assert not again.corpus.splits["test"].labelled
    assert (
        hm.audit(again, **FEW).findings == audit.findings == hm.open_audit(folder / "run").findings
    )
    assert (
        json.loads((folder / "run" / "findings.json").read_text())["findings"][0]["value"] is None
    )


@pytest.mark.parametrize("kind", [list, pd.Series])
def test_a_list_of_texts_is_audited_as_it_is_and_kept_by_its_run(folder, tmp_path, kind):
    texts = kind([row["text"] for row in rows(labels=False)])
    with warned("no label column"):
        run = hm.open_model(folder / "bert", texts, out=tmp_path / "run")
    found = hm.audit(run, **FEW)
    assert found["instances"]["label"].isna().all()
    assert hm.open_run(tmp_path / "run").corpus.fingerprint() == run.corpus.fingerprint()


def test_a_file_of_texts_alone_needs_no_name_for_their_column(folder, tmp_path):
    path = tmp_path / "tweets.csv"
    path.write_text("tweet\n" + "\n".join(str(row["text"]) for row in rows(labels=False)))
    with warned("no label column", "tweet"):
        run = hm.open_model(folder / "bert", path)
    assert len(run.corpus.splits["test"]) == 16
    assert run.settings.data.text == "tweet"


@pytest.mark.exhaustive
def test_windows_of_texts_without_labels_are_pooled(folder):
    texts = [" ".join(np.random.default_rng(i).choice(WORDS, 90)) for i in range(6)]
    with warned("no label column"):
        run = hm.open_model(folder / "bert", texts, long_texts="windows")
    found = hm.audit(run, **FEW)
    assert found.tables["instances"].num_rows > 6
    assert found.findings[0].left_out == {"no label": 6}
    assert "no label: 6" in printed(found, 100)


@pytest.mark.filterwarnings("default::UserWarning")
def test_the_command_audits_them_too(heedmap, folder, tmp_path):
    said = heedmap(
        "audit", "--model", folder / "bert", "--data", folder / "unlabelled.jsonl", "--out", tmp_path / "out",
        "--permutations", "3", "--instances", "8",
    )  # fmt: skip
    assert said.code == 0
    assert "no label column" in said.err
    assert "the texts have no labels" in " ".join(said.out.replace("│", " ").split())


def test_a_label_column_that_is_named_must_be_there(folder):
    with refused("label column (stars)", "text, id", "--label-column"):
        hm.open_model(folder / "bert", folder / "unlabelled.jsonl", label="stars")


def test_training_needs_labels(folder):
    with refused("label column", "text, id", "--label-column"):
        hm.load(folder / "unlabelled.jsonl")
    with refused("label", "heedmap.load(texts, labels=[...])", kind=TypeError):
        hm.load(["A film.", "Another."])


def test_where_one_split_has_labels_its_texts_are_read_as_before(folder, tmp_path):
    write(tmp_path / "train.jsonl", rows(labels=True))
    write(tmp_path / "test.jsonl", rows(labels=False))
    with warned("16 texts") as notes:
        run = hm.open_model(folder / "bert", tmp_path)
    said = " ".join(str(note.message) for note in notes)
    assert "16 texts without a label; those of train are audited" in said
    assert "cannot tell: cannot be told" not in said
    assert run.corpus.splits["test"].labelled


def test_the_other_column_of_a_pair_is_said_not_to_be_read(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("query,text\nWhy?,Because.\nWho?,She.\n")
    texts = read_unlabelled(DataSettings(source=str(path)))
    assert texts.queries is None
    assert any("--text-column text --query-column query" in note for note in texts.notes)
    named = read_unlabelled(DataSettings(source=str(path), text="text", query="query"))
    assert named.queries == ["Why?", "Who?"]
    assert not named.notes
