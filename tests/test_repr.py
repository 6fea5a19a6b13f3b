"""What a corpus, a run and an audit show of themselves: a few lines, never the texts."""

import pytest

import heedmap as hm


def test_a_corpus_shows_its_sizes_and_classes(reviews):
    shown = repr(reviews)
    assert len(shown.splitlines()) <= 12
    assert len(shown) < 1500
    for name, split in reviews.splits.items():
        counts = [int((split.labels == i).sum()) for i in range(len(reviews.classes))]
        (line,) = (one for one in shown.splitlines() if one.strip().startswith(f"{name}:"))
        assert f"{len(split)} texts" in line
        for label, count in zip(reviews.classes, counts, strict=True):
            assert f"{label} {count}" in line
    assert len(repr(reviews.splits["train"])) < 100


def test_many_classes_and_long_names_stay_short(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"text {i},{'x' * 90}{i % 20}\n" for i in range(100)]
    path.write_text("text,label\n" + "".join(rows))
    with pytest.warns(match="20 of 20 classes have fewer than 10 training texts"):
        shown = repr(hm.load(path))
    assert len(shown) < 2000
    assert "…" in shown


def test_an_empty_split_shows_itself(reviews):
    assert repr(reviews.splits["test"].take([])) == "<Split: 0 texts, 0.0 tokens on average>"


def test_a_run_and_an_audit_show_what_they_are(reviews):
    run = hm.train(reviews, encoder="average", embedding_size=8, epochs=1)
    assert repr(run).startswith(f"Run {run.name}, not saved: TextClassifier of\nCorpus reviews")
    audit = hm.audit(run, instances=10, permutations=3)
    shown = repr(audit)
    assert len(shown) < 20_000
    assert len(shown.splitlines()) == 1 + len(audit.findings)
    for finding in audit.findings:
        assert finding.question in shown
        assert finding.reading in repr(finding)
