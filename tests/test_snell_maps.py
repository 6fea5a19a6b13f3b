"""The drawn sentence of a translator and the drawn text of a classifier, cell by cell (Snell et al.)."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch
from made_translations import sentences

from heedmap.data.parallel import Pairs
from heedmap.data.pieces import Pieces
from heedmap.files.tables import write_table
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.translators import Encoded
from heedmap.papers.snell import sentence_maps
from heedmap.papers.snell.sentence_maps import matrix_figures, shares, text_figures, write_sentence
from heedmap.papers.snell.settings import SMALL, CopyingSettings, TranslationSettings
from heedmap.papers.snell.translation_task import (
    RECORDED,
    TranslationRecorder,
    read_sentence,
    sample,
)
from heedmap.papers.snell.word_proxies import dictionary
from heedmap.training.dynamics import SCHEMA


@pytest.fixture(scope="module")
def pieces():
    return Pieces.learned((side for one in sentences(100) for side in one[:2]), 50)


def encoded_of(pieces, count):
    found = sentences(count)
    return Encoded.of(Pairs([one[0] for one in found], [one[1] for one in found]), pieces)


def data_with(figure, column):
    return next(rows for rows in figure.spec["datasets"].values() if column in rows[0])


def cells(figure):
    return data_with(figure, "strength")


@pytest.mark.parametrize("count", [1, 2, 40, RECORDED + 30])
def test_the_matrix_is_that_of_the_models_and_of_the_words(tmp_path, pieces, count):
    encoded = encoded_of(pieces, count)
    models = {}
    for name in ("learned", "uniform"):
        torch.manual_seed(len(name))
        settings = EncoderDecoderSettings(
            size=8, embedding=6, bidirectional=True, shared=False, activation="relu", attention=name
        )
        models[name] = EncoderDecoder(settings, len(pieces)).eval().requires_grad_(False)
        folder = tmp_path / name / "dynamics"
        recorder = TranslationRecorder(models[name], encoded, encoded, pieces, folder)
        recorder.before(0)
        recorder.after_epoch(0, 3)
    lexicon = dictionary(encoded, len(pieces))
    write_sentence(tmp_path, encoded, pieces, lexicon)
    written = json.loads((tmp_path / sentence_maps.SENTENCE).read_text())
    drawn = [
        row for row in sample(encoded)
        if [pieces.token(n) for n in encoded.source[row]] == written["source"]
        and [pieces.token(n) for n in encoded.target[row]] == written["target"]
    ]  # fmt: skip
    row = drawn[0]
    weights, _, together = matrix_figures(tmp_path, tmp_path / "learned", tmp_path / "uniform")
    size, steps = len(encoded.source[row]), len(encoded.target[row])
    expected = read_sentence(models["learned"], encoded, row).attention.double().numpy()
    expected /= expected.max(1, keepdims=True)
    first = cells(weights)
    found = np.array([cell["strength"] for cell in first]).reshape(steps, size)
    assert found == pytest.approx(expected, abs=5e-3)
    for step in range(steps):
        marked = [cell for cell in first if cell["y"] == step and cell["best"]]
        assert len(marked) == 1
        assert marked[0]["strength"] == 1
    third = cells(together)
    scores = lexicon(encoded.source[row], encoded.target[row]).clamp(min=0).numpy()
    found = np.array([cell["strength"] for cell in third]).reshape(steps, size)
    assert found == pytest.approx(shares(scores), abs=5e-3)


def test_without_a_written_sentence_no_matrix_is_drawn(tmp_path):
    assert matrix_figures(tmp_path, tmp_path / "learned", tmp_path / "uniform") == []


def text_record(folder, attention, relevance, predicted=1):
    base = {"label": 1, "loss": 0.1, "split": "test", "row": 4, "influence": relevance}
    rows = [
        {**base, "step": step, "predicted": predicted, "tokens": ["a", "b", "c"] if step == 0 else None,
         "attention": attention, "relevance": relevance}
        for step in (0, 5)
    ]  # fmt: skip
    rows.append({**rows[0], "row": 7, "step": 5, "split": "dev", "tokens": None})
    write_table(folder / "dynamics" / "0000.parquet", pa.Table.from_pylist(rows, schema=SCHEMA))


def test_a_text_has_its_weights_beside_the_relevance_in_the_twin(tmp_path):
    text_record(tmp_path / "model", [0.5, 0.25, 0.25], [9.0, 9.0, 9.0])
    text_record(tmp_path / "twin", [0.1, 0.1, 0.8], [1.0, -2.0, 0.5])
    (figure,) = text_figures(tmp_path / "model", tmp_path / "twin", ["no", "yes"])
    values = data_with(figure, "series")
    assert [one["value"] for one in values] == [1, 0.5, 0.5, 0.5, -1, 0.25]
    assert "yes" in figure.n
    text_record(tmp_path / "twin", [0.1, 0.1, 0.8], [1.0, -2.0, 0.5], predicted=0)
    assert text_figures(tmp_path / "model", tmp_path / "twin", ["no", "yes"]) == []
    assert text_figures(tmp_path / "none", tmp_path / "twin", ["no", "yes"]) == []


def test_the_small_budget_is_of_translation_alone(heedmap, tmp_path):
    TranslationSettings.of(fingerprint="", source="de", target="en", **SMALL["translation"])
    found = heedmap("reproduce", "snell", "copying", "--budget", "small")
    assert found.code == 2
    assert "--budget small: expected with translation alone" in found.err


def test_copying_has_all_twenty_seeds_by_the_paper_s_budget():
    assert CopyingSettings().seeds == 20
