"""A transformer's audit from end to end, and the errors where it is impossible."""

import json

import numpy as np
import pytest
import torch
from conftest import watched
from tiny_transformers import reviews_classifier, tiny_model, tiny_tokenizer
from wording import refused, stopped

import heedmap as hm
from heedmap.huggingface.fitting import fit

FEW = {"permutations": 5, "instances": 12}


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    """Folders of tiny classifiers by architecture."""
    root = tmp_path_factory.mktemp("models")
    for name in ("bert", "llama", "bart", "bloom", "xlnet"):
        tiny_model(name).save_pretrained(root / name)
        tiny_tokenizer(name).save_pretrained(root / name)
    return root


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Sixteen short texts, one of a single word, labelled 0 and 1."""
    path = tmp_path_factory.mktemp("data") / "films.jsonl"
    rng = np.random.default_rng(0)
    words = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]
    rows = [
        {"text": " ".join(rng.choice(words, n)), "label": int(i % 2), "id": f"t{i}"}
        for i, n in enumerate([1, 2, *rng.integers(3, 9, 14)])
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize(
    "architecture",
    [
        "bert",
        "llama",
        *(pytest.param(n, marks=pytest.mark.exhaustive) for n in ("bart", "bloom", "xlnet")),
    ],
)
def test_any_architecture_goes_through_the_whole_audit(classifiers, texts, architecture, tmp_path):
    run = hm.open_model(classifiers / architecture, texts, out=tmp_path / "run")
    audit = hm.audit(run, **FEW)
    assert (tmp_path / "run" / "report.html").exists()
    assert {"scan", "heads", "adversary", "permutation"} <= set(audit.tables)
    for name in ("gradient", "integrated_gradients"):
        importance = [np.array(row) for row in audit.tables[name]["importance"].to_pylist()]
        assert all(np.isfinite(row).all() and row.max() > 0 for row in importance), name
    for finding in audit.findings:
        assert finding.n + sum(finding.left_out.values()) == 12, finding.key
    heat = audit.tables["instances"]["attention"].to_pylist()
    assert np.allclose([sum(row) for row in heat], 1, atol=1e-5)
    adversary = audit.to_dataframe("adversary")
    assert (adversary["tvd"] <= 0.01 + 1e-6).all()
    assert (adversary["jsd"] <= adversary["jsd_upper"] + 1e-6).all()
    assert adversary["on_text"].between(0, 1 + 1e-6).all()
    heads = audit.to_dataframe("heads")
    last = heads[heads["layer"] == heads["layer"].max()].groupby("row")["row_on_words"].mean()
    assert np.allclose(adversary["on_text_before"], last, atol=1e-5)
    again = hm.open_audit(tmp_path / "run")
    assert [f.value for f in again.findings] == pytest.approx(
        [f.value for f in audit.findings], nan_ok=True
    )


def test_a_stopped_audit_goes_on_and_gives_the_same_bytes(classifiers, texts, tmp_path):
    def made(folder, stop):
        run = hm.open_model(classifiers / "bert", texts, out=folder)

        def announce(name):
            if name == stop:
                raise KeyboardInterrupt

        with watched(step=announce):
            hm.audit(run, **FEW)

    made(tmp_path / "one", None)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "two", "permutation")
    made(tmp_path / "two", None)
    for path in (tmp_path / "one" / "tables").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / "tables" / path.name).read_bytes()


def test_another_bound_of_the_memory_goes_on_with_a_stopped_audit(
    heedmap, classifiers, texts, tmp_path
):
    def stop(name):
        if name == "permutation":
            raise KeyboardInterrupt

    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), watched(step=stop):
        hm.audit(hm.open_model(classifiers / "bert", texts, out=run), **FEW)
    kept = {p: p.stat().st_mtime_ns for p in (run / "tables").glob("*.parquet")}
    assert len(kept) >= 4
    few = [part for name, n in FEW.items() for part in (f"--{name}", n)]
    again = ("audit", "--model", classifiers / "bert", "--data", texts, "--out", run, *few)
    done = heedmap(*again, "--batch-tokens", 64)
    assert done.code == 0, done.err
    assert {p: p.stat().st_mtime_ns for p in kept} == kept, "no table was computed twice"
    audit = hm.open_audit(run)
    assert audit.settings.model.batch_tokens == 64
    # Both bounds that tables were made with are kept, and the number of threads.
    assert audit.about["batch_tokens"] == [64, 2048]
    assert audit.about["threads"] == [torch.get_num_threads()]
    other = heedmap(*again, "--layer", 0)
    assert (other.code, other.err.count("\n")) == (2, 1)
    stopped(other, run, "model.layer: -1 -> 0")  # a setting that changes what is asked does block


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--model", "M", "--data", "D", "--encoder", "lstm"], ["--encoder", "--model"]),
        (["--run", "R", "--view", "row"], ["--view", "--run"]),
        (
            ["--model", "M", "--data", "D", "--view", "rollout", "--head", "1"],
            ["--view rollout", "--head mean", "1"],
        ),
        (["--model", "M", "--data", "D", "--head", "foo"], ["head = 'foo'", "number", "mean"]),
        (["--model", "M", "--data", "D", "--classes", "yes,Yes"], ["--classes", "yes, Yes"]),
    ],
)
def test_options_that_do_not_fit_a_transformer_are_one_clear_line(
    heedmap, classifiers, texts, tmp_path, monkeypatch, arguments, named
):
    monkeypatch.chdir(tmp_path)
    places = {"M": classifiers / "bert", "D": texts, "R": tmp_path / "run"}
    if "R" in arguments:
        hm.open_model(classifiers / "bert", texts, out=places["R"])
    before = sorted(tmp_path.rglob("*"))
    done = heedmap("audit", *(places.get(part, part) for part in arguments))
    assert done.err.startswith("heedmap: ")
    stopped(done, *named)
    assert len(done.err.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before, "nothing half-written"


def test_the_run_folder_opens_again_and_another_model_in_its_place_is_noticed(
    classifiers, texts, tmp_path
):
    place = tmp_path / "model"
    tiny_model("bert").save_pretrained(place)
    tiny_tokenizer().save_pretrained(place)
    hm.open_model(place, texts, out=tmp_path / "run")
    assert hm.open_run(tmp_path / "run").facts["reads"] == "first"
    tiny_model("bert", seed=1).save_pretrained(place)
    with refused("run", "model"):
        hm.open_run(tmp_path / "run")


def test_labels_are_matched_by_name_or_by_number_or_refused(classifiers, tmp_path):
    def corpus_of(labels, **options):
        path = tmp_path / "x.csv"
        path.write_text("text,label\n" + "\n".join(f"a film is great,{x}" for x in labels))
        run = hm.open_model(classifiers / "bert", path, **options)
        return run.corpus.splits["test"].labels.tolist()

    assert corpus_of(["0", "1", "1"]) == [0, 1, 1]
    assert corpus_of(["Class1", "class0"]) == [1, 0]
    assert corpus_of(["yes", "no"], classes=("no", "yes")) == [1, 0]
    with refused("x.csv", "2 classes (class0, class1)", "no, yes", "--classes"):
        corpus_of(["yes", "no"])
    with refused("--classes", "2 names", "3 (a, b, c)"):
        corpus_of(["yes", "no"], classes=("a", "b", "c"))


def test_labels_that_are_not_certain_are_asked_for_before_any_weights_are_loaded(
    classifiers, tmp_path
):
    folder, path = tmp_path / "model", tmp_path / "a.csv"
    folder.mkdir()
    config = json.loads((classifiers / "bert" / "config.json").read_text())
    config["id2label"] = {"0": "no", "1": "yes"}
    (folder / "config.json").write_text(json.dumps(config))
    path.write_text("text,label\na film,1\n")
    with refused(path, "from 0, 1 is yes", "from 1, 1 is no"):
        hm.open_model(folder, path)
    with refused("safetensors", folder):
        hm.open_model(folder, path, classes=("0", "1"))
    for numbers in ("1 2", "0 2", "0 01"):
        config["id2label"] = dict.fromkeys(numbers.split(), "x")
        (folder / "config.json").write_text(json.dumps(config))
        with refused(folder, "0 to 1", "id2label", numbers.replace(" ", ", ")):
            hm.open_model(folder, path)


def test_long_texts_are_cut_or_read_in_windows_and_counted(classifiers, tmp_path):
    path = tmp_path / "long.csv"
    long = " ".join(f"film{'' if i % 2 else 's'}" for i in range(50))
    path.write_text(f"text,label\n{long},1\na bad film,0\n")
    cut = hm.open_model(classifiers / "bert", path)
    assert len(cut.corpus.splits["test"]) == 2
    assert cut.corpus.left_out == {"longer than the model's 32 positions, cut (kept)": 1}
    windows = hm.open_model(classifiers / "bert", path, long_texts="windows").corpus
    split = windows.splits["test"]
    assert len(split) == 4
    assert (cut.model.lengths(split.tokens) <= 32).all()
    assert "".join("".join(t) for t in split.tokens[:-1]) == long
    assert split.keys == ["line 2#0", "line 2#1", "line 2#2", "line 3"]
    assert split.labels.tolist() == [1, 1, 1, 0]
    assert "read as 3 windows" in next(iter(windows.left_out))


@pytest.mark.slow
def test_a_text_in_windows_is_one_instance_from_end_to_end(classifiers, tmp_path):
    rng = np.random.default_rng(0)
    words = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]
    rows = [
        {"text": " ".join(rng.choice(words, n)), "label": int(i % 2), "id": f"t{i}"}
        for i, n in enumerate([1, 2, *rng.integers(3, 90, 14)])
    ]
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    run = hm.open_model(classifiers / "bert", path, long_texts="windows", out=tmp_path / "run")
    audit = hm.audit(run, permutations=5)
    table = audit.to_dataframe("instances")
    assert len(table) > 30
    assert table["text"].nunique() == audit.about["audited"] == audit.about["test_texts"] == 16
    for finding in audit.findings:
        assert finding.n + sum(finding.left_out.values()) == 16, finding.key
    shares = table.groupby("text")["probabilities"].apply(lambda p: np.stack(p.to_list()).mean(0))
    right = [int(p.argmax() == i % 2) for i, p in enumerate(shares)]
    assert audit.findings[0].value == pytest.approx(np.mean(right))
    said = "in 36 windows; the numbers of a text are means over its windows"
    assert said in (tmp_path / "run" / "report.html").read_text().replace("&#39;", "'")
    again = hm.open_audit(tmp_path / "run")
    assert [f.value for f in again.findings] == [f.value for f in audit.findings]

    few = hm.audit(hm.open_model(classifiers / "bert", path, long_texts="windows"), instances=5)
    keys = few.to_dataframe("instances")["key"]
    drawn = {key.split("#")[0] for key in keys}
    assert len(drawn) == few.about["audited"] == 5
    assert set(keys) == {k for k in table["key"] if k.split("#")[0] in drawn}, (
        "all of a text's windows"
    )


def test_a_word_longer_than_the_model_is_refused_in_a_line():
    from heedmap.data.corpus import Split

    split = Split(["0"], [["a", " word"]], np.zeros(1, dtype=np.int64))
    with refused("8 positions", "'a'"):
        fit(split, lambda texts: np.array([9 * len(t) for t in texts]), 8, None)


def test_texts_keep_their_case_and_spaces_for_the_models_own_tokenizer(classifiers, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('text,label\n"A  Film,  is GREAT. ",1\nbad,0\n')
    run = hm.open_model(classifiers / "bert", path)
    assert "".join(run.corpus.splits["test"].tokens[0]) == "A  Film,  is GREAT. "
    shown = hm.audit(run, **FEW).tables["instances"]["tokens"].to_pylist()[0]
    assert shown == ["A", "Film", ",", "is", "GREAT", "."]


def test_the_forecast_comes_before_the_work(classifiers, texts):
    order = []
    with watched(step=order.append, note=order.append):
        hm.audit(hm.open_model(classifiers / "bert", texts), **FEW)
    assert order[0].startswith("The experiments will take about ")
    assert "instances" in order[1]


def test_an_audit_is_saved_as_a_run_that_opens(classifiers, texts, tmp_path):
    audit = hm.audit(hm.open_model(classifiers / "bert", texts), **FEW)
    audit.save(tmp_path / "kept")
    assert hm.open_audit(tmp_path / "kept").findings == audit.findings


@pytest.mark.filterwarnings("ignore:.*counting from 0")
def test_the_real_classifier_is_as_good_as_its_makers_say(minilm, real_data):
    run = hm.open_model(minilm, real_data / "sst", tokenizer="spaces")
    assert run.facts["reads"] == "first"
    split = run.corpus.splits["test"]
    texts = split.tokens[:200]
    batch = run.model.batch(texts, range(200))
    right = (run.model.logits(batch).argmax(-1).numpy() == split.labels[:200]).mean()
    assert right > 0.8


@pytest.mark.filterwarnings("ignore:.*no label column")
def test_a_model_by_a_relative_path_is_found_from_anywhere(tmp_path, monkeypatch):
    place = tmp_path / "work"
    (place / "models").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    reviews_classifier(place / "models" / "mine")
    monkeypatch.chdir(place)
    hm.open_model("models/mine", ["a great film", "bad"], out="runs/one")
    hm.open_model("models/mine", ["a great film", "bad"], out=tmp_path / "elsewhere" / "two")
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = hm.open_run(place / "runs" / "one")
    assert run.settings.model.source == "./models/mine"
    assert hm.explain(place / "runs" / "one", "a great film").tokens
    with refused("if ./models/mine was a folder", "where the run was made", "settings.toml"):
        hm.open_run(tmp_path / "elsewhere" / "two")
