"""Whole runs of pairs of texts: train, save, open, audit, resume, report; and what is refused."""

import re
from dataclasses import replace
from html import unescape

import datasets
import numpy as np
import pytest
from conftest import QUICK, small_pairs, watched
from wording import refused, stopped

import heedmap as hm
from heedmap.data import readers as files
from heedmap.data.catalog import CATALOG
from heedmap.data.load import as_written, load
from heedmap.data.rows import Row
from heedmap.report.figures import figures
from heedmap.report.page import page
from heedmap.runs.audit import audit, open_audit, rewrite
from heedmap.runs.open import open_run
from heedmap.runs.train import train

SMALL = {"encoder": "average", "embedding_size": 8, "hidden_size": 8, "epochs": 1, "min_df": 1}
COLUMNS = ("--text-column", "told", "--label-column", "answer", "--query-column", "asked")
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def pairs_file(tmp_path):
    """Three columns, 60 rows: one without a query, one without a text, some of one token."""
    rng = np.random.default_rng(0)
    lines = ["told,asked,answer"]
    for i in range(60):
        first, second = rng.permutation(["den", "hut", "inn"])[:2]
        told = f"ant in {first} bee in {second}" if i % 4 else str(first)
        lines.append(f"{told},{EVIL} ant,{first}")
    lines[8] = "ant in den,,den"
    lines[9] = ",where,den"
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path, heedmap, pairs_file):
    done = heedmap("train", "--data", pairs_file, *COLUMNS, *QUICK, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    return tmp_path / "run"


@pytest.mark.slow
def test_a_kept_run_is_audited_and_reported_like_one_in_memory(folder, heedmap, pairs_file):
    done = heedmap("audit", "--run", folder)
    assert done.code == 0, done.err
    assert "pairs: attention over the text, given its query" in done.out
    assert "empty asked: 1" in done.out
    kept = open_audit(folder)
    assert kept.about["left_out"] == {"empty asked": 1, "empty told": 1}
    assert kept.settings.audit.epsilon == 0.05
    assert "rationale" not in kept.tables
    corpus = load(pairs_file, text="told", label="answer", query="asked")
    # The run's own defaults are those of the recipe for pairs.
    sizes = {**SMALL, "min_df": None}
    whole = audit(train(corpus, **sizes))
    for name, table in whole.tables.items():  # as text: NaN is not equal to itself
        assert str(table.to_pylist()) == str(kept.tables[name].to_pylist())
    report = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    assert heedmap("report", folder).code == 0
    assert (folder / "report.html").read_bytes() == report


def test_an_audit_of_pairs_goes_on_after_the_last_finished_table(folder):
    class Stop(Exception):
        pass

    def stop(name):
        if name == "adversary":
            raise Stop

    with pytest.raises(Stop), watched(step=stop):
        audit(open_run(folder))
    names = []
    with watched(step=names.append):
        resumed = audit(open_run(folder))
    assert names == ["adversary", "smallest_change", "better_maps", "report"]
    again = audit(open_run(folder), overwrite=True, seed=0)
    assert resumed.findings == again.findings == rewrite(folder).findings


def test_texts_of_one_token_are_counted(folder):
    result = audit(open_run(folder))
    short = sum(len(t) == 1 for t in result.tables["instances"]["tokens"].to_pylist())
    assert short
    left_out = {f.key: f.left_out for f in result.findings}
    assert left_out["permutation"] == {"one token: nothing to permute": short}
    assert left_out["uniform"] == {"one token: it has all the weight": short}
    assert left_out["adversary"] == {"one token: no other weights": short}
    assert left_out["agreement_gradient"]["undefined: one token"] == short


def test_unknown_words_are_counted_in_the_queries_too():
    corpus = small_pairs()
    test = corpus.splits["test"]
    queries = [["zebra", *query] for query in test.queries]
    corpus.splits["test"] = replace(test, queries=queries)
    tokens = sum(map(len, test.tokens)) + sum(map(len, queries))
    assert train(corpus, **SMALL).facts["unknown_share"] == pytest.approx(len(test) / tokens)


@pytest.fixture(scope="module")
def asked():
    """An audit in which one text is answered wrongly and a query is not to be trusted."""
    corpus = small_pairs()
    test = corpus.splits["test"]
    queries = [[EVIL, *query] for query in test.queries]
    corpus.splits["test"] = replace(test, queries=queries)
    return audit(train(corpus, **SMALL), permutations=5)


def test_the_page_shows_the_query_the_candidates_and_the_supporting_words(asked):
    html = page(asked)
    assert EVIL not in html
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())
    assert f"query {EVIL} where is" in text
    assert "pairs: attention over the text, given its query" in text
    assert "not linear in the weights, so the most different ones are searched for" in text
    assert "not linear in the weights, and there is no exact way" in text
    assert "of the words in the test texts, each query included" in text
    assert re.search(r"probability 0\.\d{3} among [1-4] candidates", text)
    assert re.search(r"wrong label \w+ with probability 0\.\d{3} predicted \w+ with", text)
    assert 'class="gold"' in html
    assert {f.key for f in asked.findings} >= {"rationale_attention", "adversary"}
    (found,) = (f.meaning for f in asked.findings if f.key == "adversary")
    assert "found by search, so at least this" in found
    assert "the paper's search finds" in found


def test_a_page_of_single_texts_says_nothing_of_queries(small_run):
    assert (
        "quer" not in page(audit(small_run, permutations=5)).split("<body>")[1].split("<script>")[0]
    )


@pytest.mark.slow
def test_hundreds_of_classes_are_told_in_few_words(asked):
    names = [f"@entity{i}" for i in range(300)]
    rng = np.random.default_rng(0)
    corpus = small_pairs(size=180, candidates=False)
    for name, split in corpus.splits.items():
        labels = rng.integers(0, 300, len(split))
        allowed = rng.random((len(split), 300)) < 0.02
        allowed[np.arange(len(split)), labels] = True
        corpus.splits[name] = replace(split, labels=labels, allowed=allowed)
    run = train(replace(corpus, classes=names), **SMALL)
    result = audit(run, permutations=5)
    html = page(result)
    counts = [
        "/".join(str(n) for n in each)
        for each in zip(*run.corpus.class_counts().values(), strict=True)
    ]
    assert f"300: @entity0 {counts[0]}, @entity1 {counts[1]}, " in html
    with_texts = sum(any(sizes) for sizes in zip(*run.corpus.class_counts().values(), strict=True))
    assert f"and {with_texts - 12} more (train/dev/test); {300 - with_texts} without a text" in html
    assert "of 300 are predicted)</summary>" in html
    told = {figure.key: figure for figure in figures(result)}
    assert told["permutation"].keys[0].label.startswith("all texts")
    assert len(told["permutation"].keys) == len(told["tau-gradient"].keys) == 1
    probabilities = np.array(result.tables["instances"]["probabilities"].to_pylist())
    assert (probabilities[~corpus.splits["test"].allowed] == 0).all()


@pytest.mark.filterwarnings("ignore:.*classes have")
@pytest.mark.parametrize("task", [1, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_generated_stories_are_audited_with_their_supporting_facts(task):
    corpus = load(f"babi_qa{task}", train_texts=60, test_texts=8)
    run = train(corpus, encoder="average", epochs=1)
    assert (run.settings.model.embedding_size, run.settings.model.hidden_size) == (50, 32)
    assert corpus.left_out.keys() == {
        f"{part}: not drawn into the sample" for part in ("train", "dev", "test")
    }
    result = audit(run, permutations=5)
    rationale = result.tables["rationale"]
    assert np.isfinite(rationale["auc_attention"].to_numpy()).all()
    marked = result.tables["instances"]["rationale"].to_pylist()
    assert rationale["rationale_share"].to_pylist() == pytest.approx([np.mean(m) for m in marked])
    assert "given its question" in page(result)


def test_unlabelled_pairs_of_the_hub_are_counted(monkeypatch):
    kinds = ["entailment", "neutral", "contradiction"]
    features = datasets.Features(
        {
            "premise": datasets.Value("string"),
            "hypothesis": datasets.Value("string"),
            "label": datasets.ClassLabel(names=kinds),
        }
    )

    def rows(labels):
        columns = {
            "premise": ["A man sleeps."] * len(labels),
            "hypothesis": ["He is awake."] * len(labels),
            "label": labels,
        }
        return files.rows_of(datasets.Dataset.from_dict(columns, features=features), "part")

    parts = {"train": rows([0, 1, 2, -1, -1]), "validation": rows([0, 1]), "test": rows([-1, 2])}
    monkeypatch.setattr(files, "read_hub", lambda name: parts)
    corpus = hm.load("stanfordnlp/snli", dataset="snli")
    assert corpus.left_out == {"train: label missing": 2, "test: label missing": 1}
    assert corpus.classes == ["contradiction", "entailment", "neutral"]
    assert corpus.splits["test"].labels.tolist() == [0]
    assert corpus.splits["test"].queries == [["he", "is", "awake", "."]]


def test_an_answer_that_is_no_candidate_is_one_clear_line(tmp_path, heedmap, monkeypatch):
    parts = {
        "train": [
            Row("a", ["x", "y"], "x", query=["q"], candidates=("x", "y")),
            Row("b", ["x", "y"], "z", query=["q"], candidates=("x", "y")),
        ],
        "dev": [Row("c", ["x", "y"], "x", query=["q"], candidates=("x", "y"))],
        "test": [Row("d", ["x", "y"], "x", query=["q"], candidates=("x", "y"))],
    }
    known = replace(CATALOG["cnn"], read_folder=lambda folder: (parts, {}))
    monkeypatch.setitem(CATALOG, "cnn", known)
    done = heedmap("audit", "--data", tmp_path, "--dataset", "cnn", "--out", tmp_path / "out")
    assert done.err.count("\n") == 1
    stopped(done, "id b", "(x, y)", "z")


@pytest.mark.parametrize("command", ["audit", "train"])
def test_a_transformer_reads_no_data_set_of_a_paper(heedmap, pairs_file, command):
    done = heedmap(command, "--data", pairs_file, "--model", "some-model", "--dataset", "snli")
    assert done.err.count("\n") == 1
    stopped(done, "--dataset", "--model", "leave it out")


def test_stories_are_not_given_to_a_transformer():
    with refused("babi_qa1", "data set"):
        as_written(load("babi_qa1"))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--query-column", "question"), ["--query-column question", "babi_qa1"]),
        (("--text-column", "story"), ["--text-column story", "babi_qa1"]),
        (("--dataset", "snli"), ["--dataset snli", "babi_qa1"]),
    ],
)
def test_what_an_embedded_corpus_has_no_use_for_is_refused(heedmap, options, named):
    done = heedmap("audit", "--data", "babi_qa1", *options)
    stopped(done, *named)


def test_a_query_column_that_is_not_there_is_one_clear_line(heedmap, pairs_file):
    columns = (*COLUMNS[:4], "--query-column", "question")
    done = heedmap("audit", "--data", pairs_file, *columns)
    stopped(done, "query column (question)", "told, asked, answer", "--query-column")
