"""Texts from memory: frames, data sets, records and lists, and the runs that keep them."""

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import watched
from tiny_transformers import reviews_classifier
from wording import refused, warned

import heedmap as hm
from heedmap.files.manifest import Manifest

datasets.disable_progress_bars()
TEXTS = [f"This is a {'good' if i % 2 else 'bad'} film, number {i}." for i in range(60)]
LABELS = ["yes" if i % 2 else "no" for i in range(60)]
FRAME = pd.DataFrame({"email": "someone@example.org", "text": TEXTS, "label": LABELS})
SMALL = {"encoder": "average", "epochs": 1, "embedding_size": 8, "hidden_size": 8}
QUICK = {"permutations": 3, "instances": 6}
DATASET = datasets.Dataset.from_pandas(FRAME)
ENCODED = DATASET.class_encode_column("label")


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.mark.parametrize(
    "source",
    [
        FRAME,
        FRAME.astype({"label": "category", "text": "string"}),
        FRAME.set_index(pd.Index(range(100, 160))),
        FRAME.to_dict("records"),
        DATASET,
        ENCODED,
        ENCODED.with_format("torch"),
        datasets.DatasetDict({"all": ENCODED}),
    ],
    ids=["frame", "typed", "indexed", "records", "dataset", "classes", "torch", "dict"],
)
def test_every_kind_of_table_is_read_as_its_file_is(tmp_path, source):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    corpus = hm.load(source)
    assert corpus.fingerprint() == hm.load(tmp_path / "a.csv").fingerprint()
    assert corpus.settings.source == hm.load(TEXTS, labels=LABELS).settings.source
    assert hm.load(source, seed=1).settings.source == corpus.settings.source


@pytest.mark.parametrize(
    "make", [list, tuple, np.array, pd.Series, lambda v: datasets.Dataset.from_dict({"v": v})["v"]]
)
def test_texts_come_as_any_list_with_their_labels(make):
    corpus = hm.load(make(TEXTS), labels=make(LABELS))
    assert corpus.settings.source == hm.load(FRAME).settings.source


def test_columns_without_names_are_called_by_their_numbers():
    frame = FRAME[["text", "label"]].set_axis([0, 1], axis=1)
    for text, label in ((0, 1), ("0", "1"), tuple(frame.columns), tuple(np.arange(2))):
        assert hm.load(frame, text=text, label=label).classes == ["no", "yes"]


def test_dates_without_a_time_are_the_same_labels_from_everywhere(tmp_path):
    days = pd.to_datetime(["2024-05-01", "2024-05-02"] * 30)
    frame = pd.DataFrame({"text": TEXTS, "label": days})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    sources = (frame, frame.to_dict("records"), datasets.Dataset.from_pandas(frame))
    for source in (*sources, *(tmp_path / f"a.{kind}" for kind in ("csv", "parquet"))):
        assert hm.load(source).classes == ["2024-05-01", "2024-05-02"]
    for labels in (days, days.values.astype("datetime64[ns]")):
        assert hm.load(TEXTS, labels=labels).classes == ["2024-05-01", "2024-05-02"]
    for other in (pd.Timedelta(1, "ns"), pd.Timedelta(6, "h")):
        frame["label"] = days + other
        assert hm.load(frame).classes == [str(day) for day in frame.label[:2]]
    frame["label"] = days.tz_localize("UTC")
    assert hm.load(frame).classes == ["2024-05-01 00:00:00+00:00", "2024-05-02 00:00:00+00:00"]


@pytest.mark.parametrize("kind", ["float16", "float32", "Float32", "float[pyarrow]"])
def test_floats_of_less_precision_are_labels_as_they_were_written(tmp_path, kind):
    frame = pd.DataFrame({"text": TEXTS, "label": pd.Series([0.1, 0.7] * 30, dtype=kind)})
    frame.to_parquet(tmp_path / "a.parquet")
    data_set = datasets.Dataset.from_pandas(frame)
    for source in (frame, data_set, tmp_path / "a.parquet"):
        assert hm.load(source).classes == ["0.1", "0.7"]
    records = [{"text": t, "label": np.float32(0.1 + i % 2)} for i, t in enumerate(TEXTS)]
    assert hm.load(records).classes == ["0.1", "1.1"]
    for labels in (frame["label"], frame["label"].to_numpy()):
        assert hm.load(TEXTS, labels=labels).classes == ["0.1", "0.7"]


def test_whole_numbers_of_less_precision_stay_the_numbers_they_are():
    labels = np.array([123456792, 3e38] * 30, np.float32)
    assert hm.load(TEXTS, labels=labels).classes == ["123456792", str(int(labels[1]))]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(60), pa.timestamp("us", tz="Nowhere/Land")),
        pa.array([4_000_000 + i % 2 for i in range(60)], pa.date32()),
        pa.array([i % 2 for i in range(60)], pa.time64("ns")),
    ],
    ids=["zone", "year", "nanoseconds"],
)
@pytest.mark.parametrize("name", ["label", "id"])
def test_values_that_python_cannot_hold_are_one_clear_line(tmp_path, column, name):
    labels = [str(i % 2) for i in range(60)]
    pq.write_table(pa.table({"text": TEXTS, "label": labels, name: column}), tmp_path / "a.parquet")
    with refused(f"a.parquet, column {name}"):
        hm.load(tmp_path / "a.parquet", **{name: name})
    if name == "id":
        with warned("column id", "the column is not read"):
            assert hm.load(tmp_path / "a.parquet").settings.id is None


def test_queries_make_pairs(tmp_path):
    asked = ["who?", "what is it?"] * 30
    corpus = hm.load(TEXTS, labels=LABELS, queries=asked)
    run = hm.train(corpus, out=tmp_path / "run", **SMALL)
    assert corpus.splits["test"].queries[0] in (["who", "?"], ["what", "is", "it", "?"])
    assert hm.open_run(tmp_path / "run").corpus.fingerprint() == run.corpus.fingerprint()


def test_a_dict_of_data_sets_has_its_own_splits():
    parts = {
        "train": ENCODED,
        "validation": ENCODED.select(range(8)),
        "test": ENCODED.select([1, 2]),
    }
    corpus = hm.load(datasets.DatasetDict(parts, unsupervised=ENCODED.select(range(5))))
    assert [len(split) for split in corpus.splits.values()] == [60, 8, 2]
    assert corpus.left_out == {"unsupervised: not a train, dev or test split": 5}


def test_what_is_missing_is_counted():
    frame = pd.DataFrame(
        {"text": [*TEXTS, None, np.nan, "x"], "label": [*[1.0] * 30, *[0] * 30, 1, 0, np.nan]}
    )
    corpus = hm.load(frame)
    assert corpus.left_out == {"empty text": 2, "label missing": 1}
    assert corpus.classes == ["0", "1"]
    assert hm.load(frame.astype({"label": "Int64"})).fingerprint() == corpus.fingerprint()
    assert hm.load([*TEXTS, None], labels=[*LABELS, 1]).left_out == {"empty text": 1}


@pytest.mark.parametrize(
    ("make", "error", "named"),
    [
        (lambda: hm.load(TEXTS), TypeError, ["label", "heedmap.load(texts, labels=[...])"]),
        (lambda: hm.load(TEXTS, labels=LABELS[:3]), hm.InputError, ["label", "3 for 60 texts"]),
        (lambda: hm.load(TEXTS, labels="label"), TypeError, ["list", "label", "str"]),
        (lambda: hm.load([1, "b"], labels=[0, 1]), TypeError, ["int as text 0"]),
        (lambda: hm.load([], labels=[]), hm.InputError, ["list: ", "rows"]),
        (lambda: hm.load(FRAME, labels=LABELS), TypeError, ["pandas.DataFrame", "label='...'"]),
        (lambda: hm.load("a.csv", labels=LABELS), TypeError, ["str", "label='...'"]),
        (lambda: hm.load({"text": TEXTS}), TypeError, ["dict", "pandas DataFrame", "labels=[...]"]),
        (lambda: hm.load([{1: "a"}]), TypeError, ["keys", "int"]),
        (lambda: hm.load([{"text": "a"}, 5]), TypeError, ["int as record 1"]),
        (lambda: hm.load(iter(TEXTS), labels=LABELS), TypeError, ["list_iterator", "list(...)"]),
        (lambda: hm.load(set(TEXTS)), TypeError, ["set", "list(...)"]),
        (lambda: hm.load(FRAME[:0]), hm.InputError, ["DataFrame", "rows"]),
        (lambda: hm.load(FRAME, label="stars"), hm.InputError, ["(stars)", "email, text, label"]),
        (lambda: hm.load(FRAME, text=["a", "B"]), hm.InputError, ["text = ['a', 'B']", "text='a,B'"]),
        (lambda: hm.load(FRAME, text=True), hm.InputError, ["text = True", "expected text"]),
        (lambda: hm.load(FRAME, separator=";"), hm.InputError, ["--separator ;", "DataFrame"]),
        (lambda: hm.load(FRAME, dataset="babi_qa1"), hm.InputError, ["DataFrame", "bAbI 1"]),
        (lambda: hm.load(pd.concat([FRAME, FRAME], axis=1)), hm.InputError, ["DataFrame", "column text", "2"]),
        (
            lambda: hm.load([{"text": "a", "label": 1}, {"text": ["b"], "label": 0}]),
            hm.InputError,
            ["records, index 1", "text = ['b']"],
        ),
        (
            lambda: hm.load(["a", "\ud800"], labels=[0, 1]),
            hm.InputError,
            ["list, index 1, text", "half a character"],
        ),
        (
            lambda: hm.load(["a", "b"], labels=[1, 10**5000]),
            hm.InputError,
            ["list, index 1, label", "4300 digits"],
        ),
        (lambda: hm.load("memory:0123456789abcdef"), hm.InputError, ["memory:0123456789abcdef", "texts/"]),
        (lambda: hm.open_model("m", hm.load(FRAME)), hm.InputError, ["heedmap.load", "a Corpus"]),
    ],
)  # fmt: skip
def test_what_is_no_table_is_one_clear_line(make, error, named):
    with refused(*named, kind=error):
        make()


@pytest.mark.slow
def test_a_frames_run_is_audited_saved_and_opened_again(tmp_path):
    """From the frame to the folder and back; what was not read is not kept."""
    frame = FRAME.copy()
    corpus = hm.load(frame)
    frame["text"] = "changed afterwards"
    audit = hm.audit(hm.train(corpus, **SMALL), **QUICK)
    assert repr(audit).startswith("Audit of texts from memory (")
    audit.save(tmp_path / "saved")
    kept = tmp_path / "saved" / "texts" / "all.jsonl"
    assert b"example.org" not in kept.read_bytes()
    run = hm.open_run(tmp_path / "saved")
    assert run.corpus.fingerprint() == corpus.fingerprint()
    assert run.corpus.splits["test"].written == corpus.splits["test"].written
    assert run.settings.data.source == run.corpus.settings.source == corpus.settings.source
    (tmp_path / "saved").rename(tmp_path / "moved")
    files = files_of(tmp_path / "moved")
    assert hm.audit(hm.open_run(tmp_path / "moved"), **QUICK).tables.keys() == audit.tables.keys()
    report = tmp_path / "moved" / "report.html"
    assert files.keys() == files_of(tmp_path / "moved").keys()
    assert report.exists()


@pytest.mark.slow
def test_the_same_texts_resume_a_run_to_the_same_bytes_and_others_are_noticed(tmp_path):
    def audited(folder, source):
        hm.audit(hm.train(hm.load(source), out=folder, **SMALL), **QUICK)

    def stop(name):
        if name == "permutation":
            raise KeyboardInterrupt

    audited(tmp_path / "run", FRAME)
    whole = files_of(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), watched(step=stop):
        audited(tmp_path / "again" / "run", FRAME)
    audited(tmp_path / "again" / "run", FRAME.to_dict("records"))
    assert files_of(tmp_path / "again" / "run") == whole
    with refused("data.source: 'memory"):
        audited(tmp_path / "run", FRAME.assign(text=FRAME.text.str.replace("film", "play")))
    assert files_of(tmp_path / "run") == whole


def test_texts_that_are_lost_or_changed_are_noticed_and_given_again(tmp_path, monkeypatch):
    def train():
        return hm.train(hm.load(FRAME), out=tmp_path / "run", **SMALL)

    train()
    kept = tmp_path / "run" / "texts" / "all.jsonl"
    content = kept.read_bytes()
    kept.write_bytes(content.replace(b"film", b"play"))
    with refused("all.jsonl", "settings.toml"):
        hm.open_run(tmp_path / "run")
    with warned("all.jsonl.changed"):
        train()
    assert kept.read_bytes() == content
    kept.with_name("all.jsonl.changed").unlink()
    kept.unlink()
    with refused("memory:", "texts/"):
        hm.open_run(tmp_path / "run")

    def full(folder, path, content):
        raise hm.InputError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "write", full)
        with refused("full"):
            train()
    train()
    assert hm.open_run(tmp_path / "run").corpus.name == "texts"
    assert kept.read_bytes() == content
    hm.train(hm.load("reviews"), out=tmp_path / "run", overwrite=True, **SMALL)
    assert not kept.parent.exists()


def test_a_transformer_is_put_on_trial_with_texts_from_memory(tmp_path):
    model = reviews_classifier(tmp_path / "model")
    labels = ["pos" if i % 2 else "neg" for i in range(60)]
    frame = pd.DataFrame({"text": TEXTS, "label": labels})
    run = hm.open_model(model, frame, out=tmp_path / "run")
    listed = hm.open_model(model, TEXTS, labels=labels, out=tmp_path / "run")
    assert run.corpus.fingerprint() == listed.corpus.fingerprint()
    (tmp_path / "run").rename(tmp_path / "moved")
    assert hm.open_run(tmp_path / "moved").corpus.fingerprint() == run.corpus.fingerprint()
