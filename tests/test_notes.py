"""Caveats on the numbers appear on the card, on the page, and as warnings."""

import gzip
import io
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from tiny_transformers import tiny_model, tiny_tokenizer
from transformers import BertConfig
from wording import warned

import heedmap as hm
from heedmap.experiments.notes import MOST_TIED, tied_texts, ties
from heedmap.huggingface.pair_models import sign_of_pairs
from heedmap.report.card import card
from heedmap.settings.models import ModelSettings, TransformerSettings

TEXTS = ["a great film .", "bad plot", "the plot is bad .", "unwatchable films"]


@pytest.mark.parametrize(
    ("classes", "sign"),
    [
        (["negative", "positive"], None),
        (["negative", "neutral", "positive"], None),
        (["LABEL_0", "LABEL_1"], None),
        (["World", "Sports", "Business"], None),
        (["entailment", "neutral", "contradiction"], "entailment"),
        (["ENTAILMENT", "NOT_ENTAILMENT"], "ENTAILMENT"),
        (["no", "not-duplicate"], "not-duplicate"),
        (["Irrelevant", "Relevant"], "Irrelevant"),
        (["not_equivalent", "equivalent"], "not_equivalent"),
    ],
)
def test_a_model_of_pairs_is_told_by_its_classes(classes, sign):
    found = sign_of_pairs(BertConfig(id2label=dict(enumerate(classes))))
    assert found == (None if sign is None else f"its class {sign!r}")


@pytest.mark.parametrize("mark", ["sentence_transformers", "sbert_ce_default_activation_function"])
def test_a_model_of_pairs_is_told_by_the_mark_of_sentence_transformers(mark):
    assert "cross-encoder" in sign_of_pairs(BertConfig(**{mark: {"version": "5.0"}}))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts labelled 0 and 1."""
    path = tmp_path_factory.mktemp("data") / "films.jsonl"
    path.write_text("\n".join(json.dumps({"text": t, "label": i % 2}) for i, t in enumerate(TEXTS)))
    return path


def shown(audit):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(card(audit))
    return console.export_text()


@pytest.mark.slow
def test_a_cross_encoder_on_single_texts_is_not_audited_without_a_word(heedmap, texts, tmp_path):
    model = tiny_model("bert")
    model.config.id2label = {0: "not_entailment", 1: "entailment"}
    model.save_pretrained(tmp_path / "nli")
    tiny_tokenizer().save_pretrained(tmp_path / "nli")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = hm.open_model(tmp_path / "nli", texts, out=tmp_path / "run")
    (note,) = run.facts["notes"]
    about_pairs, about_labels = (str(warning.message) for warning in said)
    assert about_labels.startswith(f"{texts}: labels are numbers")
    assert about_pairs == note
    assert "looks like a model of pairs of texts (its class 'not_entailment')" in note
    assert "\n" not in note
    audit = hm.audit(run, permutations=2, instances=2)
    assert "looks like a model of pairs of texts" in shown(audit)
    assert "looks like a model of pairs of texts" in (tmp_path / "run" / "report.html").read_text()
    of_labels = about_labels.removeprefix(f"{texts}: ")
    assert hm.open_audit(tmp_path / "run").about["notes"] == [of_labels, note]
    with warned("pairs"):
        hm.open_run(tmp_path / "run")


def test_a_model_of_single_texts_is_opened_without_a_word(texts, tmp_path):
    tiny_model("bert").save_pretrained(tmp_path / "bert")
    tiny_tokenizer().save_pretrained(tmp_path / "bert")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "notes" not in hm.open_model(tmp_path / "bert", texts).facts


# --- ties ------------------------------------------------------------------------------------------------


def importance(*lists):
    return pa.chunked_array([pa.array(lists, pa.list_(pa.float64()))])


@pytest.mark.parametrize(
    ("lists", "share"),
    [
        ([], 0),
        ([[float("nan")]], 0),
        ([[0.1], None, []], 0),
        ([[0.1, 0.2]], 0),
        ([[0.1, 0.1]], 1),
        ([[0.0, 0.3, 0.0], [0.1, 0.2, 0.3]], 0.5),
        ([[0.1, 0.2], [0.1], [0.3, 0.3], [0.2, 0.4]], 1 / 3),
    ],
)
def test_texts_with_words_of_the_same_importance_are_counted(lists, share):
    assert tied_texts(importance(*lists)) == pytest.approx(share)


def test_ties_are_noted_of_half_precision_alone_and_of_more_than_a_quarter():
    def tables(tied, of=8):
        lists = [[0.5, 0.5] if i < tied else [0.5, 0.25] for i in range(of)]
        return {
            "instances": pa.table({"row": range(of)}),
            "leave_one_out": pa.table({"importance": importance(*lists)}),
        }

    assert MOST_TIED == 0.25
    half = TransformerSettings(source="m", dtype="bfloat16")
    assert ties(tables(2), half) == []
    (note,) = ties(tables(3), half)
    assert note.startswith("bfloat16 rounds: in 38% of the texts")
    assert ties(tables(8), TransformerSettings(source="m")) == []
    assert ties(tables(8), ModelSettings()) == []


@pytest.mark.exhaustive
def test_a_real_model_in_half_precision_says_that_it_ties(minilm, real_data, tmp_path):
    lines = gzip.decompress((real_data / "sst" / "test.jsonl.gz").read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines]
    short = [row for row in rows if row["label"] is not None and len(row["text"].split()) < 10]
    some = [row for label in (0, 1) for row in [r for r in short if r["label"] == label][:2]]
    lines = [
        json.dumps({"text": r["text"], "label": ("negative", "positive")[r["label"]]}) for r in some
    ]
    # Some processors take minutes for longer ones.
    (tmp_path / "short.jsonl").write_text("\n".join(lines))
    run = hm.open_model(minilm, tmp_path / "short.jsonl", dtype="bfloat16", out=tmp_path / "run")
    with warned("eager attention", "default"), warned("bfloat16", "float32"):
        audit = hm.audit(run, permutations=2)
    assert tied_texts(audit.tables["leave_one_out"]["importance"]) > 0.5
    page = (tmp_path / "run" / "report.html").read_text()
    assert len(audit.about["notes"]) == 2
    for note in audit.about["notes"]:
        assert note[:40] in shown(audit)
        assert note[:40] in page
    assert np.isfinite(audit.findings[0].value)
