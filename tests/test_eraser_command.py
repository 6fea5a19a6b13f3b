"""`heedmap eraser`: what is exported scores as the run's tables say; hand-worked and malformed files."""

import json
from copy import deepcopy

import numpy as np
import pytest
from conftest import QUICK
from eraser_files import eraser_folder
from wording import refused, stopped

from heedmap import audit, load, train
from heedmap.data.documents import documents
from heedmap.data.eraser_predictions import read_predictions
from heedmap.errors import InputError
from heedmap.runs.eraser_export import export
from heedmap.runs.eraser_scores import score
from heedmap.settings.data import DataSettings

AGREEMENT = {"AUPRC": "auprc", "token F1": "token_f1", "IOU F1": "iou_f1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return eraser_folder(tmp_path_factory.mktemp("eraser") / "movies")


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    """An audited run, and its audit. The tokens are the documents' words."""
    out = tmp_path_factory.mktemp("runs") / "movies"
    corpus = load(folder, tokenizer="spaces")
    sizes = {"embedding_size": 12, "hidden_size": 16}
    made = train(corpus, encoder="average", epochs=4, min_df=1, out=out, **sizes)
    return out, audit(made)


@pytest.mark.parametrize("ranking", ["attention", "read_out", "leave_one_out"])
def test_what_is_exported_scores_as_the_tables_say(run, folder, tmp_path, ranking):
    out, result = run
    path = tmp_path / "predictions.jsonl"
    whole, count, notes = export(out, ranking, path)
    assert (count, notes) == (20, {})
    predictions = read_predictions(path, whole)
    scores = {one.name: one for one in score(predictions, whole)[0]}
    people, faithful = (result.to_dataframe(name) for name in ("plausibility", "eraser"))
    for name, column in AGREEMENT.items():
        assert scores[name].value == pytest.approx(people[f"{column}_{ranking}"].mean(), abs=1e-6)
        assert scores[name].n == 20
        if name != "IOU F1":  # which is of other draws
            chance = people[f"{column}_chance"].mean()
            assert scores[name].chance == pytest.approx(chance, abs=1e-6)
    assert scores["token F1"].best == pytest.approx(people.token_f1_best.mean(), abs=1e-6)
    for measure in ("comprehensiveness", "sufficiency"):
        mean = faithful[f"{measure}_{ranking}"].mean()
        assert scores[f"{measure} (AOPC)"].value == pytest.approx(mean, abs=1e-6)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["annotation_id"] for row in rows] == [f"test-{i}" for i in range(20)]
    for row in rows:
        assert sum(row["classification_scores"].values()) == pytest.approx(1)
        probabilities = row["classification_scores"]
        assert row["classification"] == max(probabilities, key=probabilities.get)


def test_other_tokens_and_a_cut_are_spread_over_the_words_and_told(folder, tmp_path, heedmap):
    out = tmp_path / "run"
    done = heedmap("audit", "--data", folder, "--out", out, "--max-tokens", "6", *QUICK)
    assert done.code == 0, done.err
    done = heedmap("eraser", out, "--ranking", "gradient")
    assert done.code == 0, done.err
    assert "or cut: its words are scored: " in done.out
    whole = documents(DataSettings(source=str(folder)))
    predictions = read_predictions(out / "eraser-gradient.jsonl", whole)
    for one in predictions:
        assert len(one.soft) == len(whole[one.key].words)
        assert not one.hard[6:].any()
        assert (one.soft[6:] <= one.soft.min()).all()


def test_the_command_exports_and_scores_alike(run, folder, heedmap):
    out, _ = run
    first = heedmap("eraser", out)
    assert first.code == 0, first.err
    path = out / "eraser-attention.jsonl"
    assert first.out.startswith(f"Predictions: {path} (20 texts)\n")
    content = path.read_bytes()
    second = heedmap("eraser", path, "--data", folder)
    assert second.code == 0, second.err
    assert first.out.split("\n", 1)[1] == second.out
    assert "Agreement with people is plausibility, not faithfulness." in second.out
    heedmap("eraser", out)
    assert path.read_bytes() == content


WORKED = {
    "annotation_id": "test-0",
    "classification": "POS",
    "classification_scores": {"POS": 0.9, "NEG": 0.1},
    "comprehensiveness_classification_scores": {"POS": 0.3, "NEG": 0.7},
    "sufficiency_classification_scores": {"POS": 0.95, "NEG": 0.05},
}


def worked(whole):
    """A line about the first text: the last of its two marked words and the one after it are chosen."""
    document = whole["test-0"]
    at = int(np.flatnonzero(document.marked)[-1])
    soft = [0.0] * len(document.words)
    soft[at], soft[at + 1], soft[at - 1] = 0.9, 0.8, 0.7
    span = {"start_token": at, "end_token": at + 2}
    one = {
        "docid": "test-0.txt",
        "hard_rationale_predictions": [span],
        "soft_rationale_predictions": soft,
    }
    steps = [
        {
            "threshold": threshold,
            "comprehensiveness_classification_scores": {"POS": p, "NEG": 1 - p},
            "sufficiency_classification_scores": {"POS": q, "NEG": 1 - q},
        }
        for threshold, p, q in zip(
            (0.01, 0.05, 0.1, 0.2, 0.5), (0.8, 0.8, 0.7, 0.4, 0.3), (0.5, 0.5, 0.6, 0.9, 1.0),
            strict=True,
        )
    ]  # fmt: skip
    return {**deepcopy(WORKED), "rationales": [one], "thresholded_scores": steps}


@pytest.fixture
def whole(folder):
    found = documents(DataSettings(source=str(folder)))
    marked = np.flatnonzero(found["test-0"].marked)
    assert len(marked) == 2
    assert marked[-1] + 1 < len(found["test-0"].words)
    return found


def test_a_file_worked_by_hand(whole, tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(worked(whole)) + "\n")
    scores = {one.name: one for one in score(read_predictions(path, whole), whole)[0]}
    size = len(whole["test-0"].words)
    # Marked is the first, not the second, and the third by score.
    assert scores["AUPRC"].value == pytest.approx((1 + 2 / 3) / 2)
    assert scores["token F1"].value == pytest.approx(1 / 2)
    assert scores["token F1"].chance == pytest.approx(2 / size)
    assert scores["IOU F1"].value == 0.0  # one word of three
    assert scores["IOU F1"].best == 1.0
    assert scores["comprehensiveness of the rationale"].value == pytest.approx(0.6)
    assert scores["sufficiency of the rationale"].value == pytest.approx(-0.05)
    assert scores["comprehensiveness (AOPC)"].value == pytest.approx(
        (0.1 + 0.1 + 0.2 + 0.5 + 0.6) / 5
    )
    assert scores["sufficiency (AOPC)"].value == pytest.approx((0.4 + 0.4 + 0.3 + 0 - 0.1) / 5)
    assert {one.n for one in scores.values()} == {1}


def test_what_a_file_does_not_have_is_not_scored(whole, tmp_path):
    path = tmp_path / "p.jsonl"
    row = worked(whole)
    del row["rationales"][0]["hard_rationale_predictions"]
    path.write_text(json.dumps({k: row[k] for k in ("annotation_id", "rationales")}) + "\n")
    scores, _ = score(read_predictions(path, whole), whole)
    assert [one.name for one in scores] == ["AUPRC"]


def rationale(**changes):
    def change(row):
        row["rationales"][0].update(changes)

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda x: x.pop("annotation_id"), "annotation_id: expected one of the corpus's 20 texts"),
        (lambda x: x.update(annotation_id="train-0"), "annotation_id"),
        (lambda x: x.pop("rationales"), "rationales: expected a list"),
        (lambda x: x["rationales"].append(x["rationales"][0]), "rationales"),
        (rationale(docid="test-1.txt"), "docid: expected test-0.txt"),
        (rationale(hard_rationale_predictions=[{"start_token": 1}]), "hard_rationale_predictions"),
        (rationale(hard_rationale_predictions=[{"start_token": 3, "end_token": 3}]), "hard_rati"),
        (rationale(hard_rationale_predictions={"start_token": 0, "end_token": 99}), "hard_rati"),
        (rationale(hard_rationale_predictions=[[0, 1]]), "hard_rationale_predictions"),
        (rationale(soft_rationale_predictions=[0.1]), "words, got 1 values"),
        (rationale(soft_rationale_predictions="x"), "soft_rationale_predictions"),
        (lambda x: x.update(classification="MEH"), "classification_scores: expected"),
        (lambda x: x.pop("classification_scores"), "classification_scores: expected"),
        (lambda x: x["classification_scores"].update(POS=1.5), "classification_scores"),
        (lambda x: x.pop("sufficiency_classification_scores"), "sufficiency_classification_scores"),
        (lambda x: x["thresholded_scores"].pop(2), "thresholded_scores: expected"),
        (lambda x: x.update(thresholded_scores={"a": 1}), "thresholded_scores: expected"),
        (
            lambda x: x["thresholded_scores"][4].pop("sufficiency_classification_scores"),
            "thresholded_scores: sufficiency_classification_scores: expected",
        ),
    ],
)
def test_a_malformed_line_is_named_with_file_line_and_field(whole, tmp_path, change, field):
    row = worked(whole)
    change(row)
    path = tmp_path / "p.jsonl"
    other = {"annotation_id": "test-1", "rationales": []}
    path.write_text(json.dumps(other) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(InputError) as caught:
        read_predictions(path, whole)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 2: ")
    assert field in message
    assert "\n" not in message


def test_a_text_that_is_there_twice_and_an_empty_file_are_refused(whole, tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text(2 * (json.dumps(worked(whole)) + "\n"))
    with refused("line 2", "annotation_id", "'test-0'", "twice"):
        read_predictions(path, whole)
    path.write_text("\n")
    with refused(path):
        read_predictions(path, whole)


def test_without_the_words_that_people_marked_one_line_says_who_has_them(
    heedmap, csv_file, tmp_path
):
    done = heedmap("audit", "--data", csv_file, "--out", tmp_path / "run", *QUICK)
    assert done.code == 0, done.err
    (tmp_path / "p.jsonl").write_text("{}\n")
    for arguments in ([tmp_path / "run"], [tmp_path / "p.jsonl", "--data", csv_file]):
        done = heedmap("eraser", *arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1
        stopped(done, csv_file, "ERASER")
    assert not (tmp_path / "run" / "eraser-attention.jsonl").exists()


def test_options_that_do_not_fit_are_refused(run, folder, heedmap, tmp_path):
    out, _ = run
    (tmp_path / "p.jsonl").write_text("{}\n")
    for arguments, *named in [
        ([out, "--ranking", "best"], "--ranking", "attention, gradient"),
        ([out, "--data", folder], "--data", "a run"),
        ([out, "--text", "a"], "--text", "a run"),
        ([tmp_path / "p.jsonl"], "--data"),
        ([tmp_path / "p.jsonl", "--data", folder, "--ranking", "gradient"], "--ranking"),
        ([tmp_path / "no.jsonl", "--data", folder], "no.jsonl"),
        ([tmp_path], "settings.toml"),
    ]:
        done = heedmap("eraser", *arguments)
        stopped(done, *named)
        assert done.err.count("\n") == 1
