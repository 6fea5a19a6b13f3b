"""What a corpus, a run and an audit show of themselves: a few lines, never the texts."""

import re
from dataclasses import replace

import numpy as np
import pytest
from made_audits import EVIL, Elements, make_audit
from wording import warned

import heedmap as hm
from heedmap.data.corpus import Split
from heedmap.experiments.findings import answer_text, level_text
from heedmap.experiments.levels import SIGNS
from heedmap.nouns import ASKED_WORDS, BAGS, INSTANCES, PAIRS, PICTURES
from heedmap.report.wording import overview_number
from heedmap.terminal.html import html_table


@pytest.fixture(scope="module")
def run(reviews):
    return hm.train(reviews, encoder="average", embedding_size=8, epochs=1)


@pytest.fixture(scope="module")
def audit(run):
    return hm.audit(run, instances=60, permutations=3)


def words_of(html):
    """What a browser would show; no element that could act."""
    page = Elements(html)
    assert {tag for tag, _ in page.found} <= {
        "div", "b", "table", "tr", "th", "td", "details", "summary",
    }  # fmt: skip
    assert all(set(attributes) <= {"style"} for _, attributes in page.found)
    return " ".join(page.text)


def test_a_corpus_shows_its_sizes_and_classes(reviews):
    shown = repr(reviews)
    assert len(shown.splitlines()) <= 12
    assert len(shown) < 1500
    table = words_of(reviews._repr_html_())
    for name, split in reviews.splits.items():
        counts = [int((split.labels == i).sum()) for i in range(len(reviews.classes))]
        (line,) = (one for one in shown.splitlines() if one.strip().startswith(f"{name}:"))
        assert f"{len(split)} texts" in line
        assert f"{name} {split._sizes()} {counts[0]} {counts[1]}" in table
        for label, count in zip(reviews.classes, counts, strict=True):
            assert f"{label} {count}" in line
            assert label in table
    assert len(repr(reviews.splits["train"])) < 100
    assert f"texts {len(reviews.splits['test'])} " in words_of(reviews.splits["test"]._repr_html_())


def test_many_classes_and_long_names_stay_short(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"text {i},{'x' * 90}{i % 20}\n" for i in range(100)]
    path.write_text("text,label\n" + "".join(rows))
    with warned("20 of 20 classes", "10"):
        corpus = hm.load(path)
    assert len(repr(corpus)) < 2000
    assert "…" in repr(corpus)
    table = words_of(corpus._repr_html_())
    assert "12 more" in table
    assert len(table) < 1000


def test_a_corpus_calls_its_texts_and_its_outputs_by_their_nouns(reviews):
    def shown(classes=reviews.classes, size=2, **settings):
        split = reviews.splits["test"].take(range(size))
        return repr(
            replace(
                reviews,
                classes=classes,
                splits={"test": split},
                settings=reviews.settings.model_copy(update=settings),
            )
        )

    for nouns, said in (
        (None, ["2 texts", "tokens on average"]),
        (PAIRS, ["2 pairs", "tokens on average"]),
        (ASKED_WORDS, ["2 tokens", "words on average"]),
        (PICTURES, ["2 pictures", "patches on average"]),
        (INSTANCES, ["2 instances", "items on average"]),
    ):
        assert re.search(r"test: {}, [\d.]+ {};".format(*said), shown(nouns=nouns))
    assert "1 bag, " in shown(size=1, nouns=BAGS)
    assert ", 2 classes\n" in shown()
    assert ", 1 class\n" in shown(classes=["one"])
    assert ", numbers\n" in shown(classes=["stars"], training=False)
    arrays = hm.from_arrays([[1.0]], readouts=[[1.0]], unit="points")
    assert "Corpus arrays, numbers\n  test: 1 instance, 1.0 items on average" in repr(arrays)


def test_an_empty_split_shows_itself(reviews):
    empty = reviews.splits["test"].take([])
    assert repr(empty) == "<Split: 0 texts, 0.0 tokens on average>"
    assert "texts 0" in words_of(empty._repr_html_())


def test_names_of_a_corpus_are_text_not_markup(reviews):
    split = Split(["a"], [[EVIL[0]]], np.array([0]))
    corpus = replace(
        reviews, name=EVIL[0], classes=EVIL, splits={EVIL[1]: split}, left_out={EVIL[3]: 2}
    )
    shown = words_of(corpus._repr_html_())
    for text in EVIL[:4]:
        assert text in shown
    assert "\x1b" not in shown
    assert "\\x1b[31mred" in shown


def test_cells_are_one_line_of_text():
    assert words_of(html_table([("a\nb", 1 < 2)], ["<i>"], "&amp;")) == "&amp; <i> a\\nb True"


def test_of_a_marked_row_only_the_first_cell_stays_on_one_line():
    styles = [
        a["style"]
        for tag, a in Elements(html_table([("− no", "b c")], marks=["red"])).found
        if tag == "td"
    ]
    assert [style.split("white-space:")[-1] for style in styles] == ["nowrap", "normal"]


def test_a_run_shows_what_it_is(run, reviews):
    shown = repr(run)
    assert shown.startswith("Run reviews\n  model: TextClassifier, average encoder, additive score")
    assert "folder: not saved" in shown
    assert shown.endswith(repr(reviews))
    assert "best epoch 1 of 1; dev accuracy" in words_of(run._repr_html_())


def test_an_audit_shows_its_bottom_line_and_what_speaks_for_and_against(audit):
    judged = [f for f in audit.findings if f.level != "for comparison"]
    shown = repr(audit)
    assert len(shown) < 3000
    assert {f.key for f in judged} == {"skill", "needed", "sufficient", "holding", "weights"}
    assert len(shown.splitlines()) == 3 + len(judged)
    for finding in judged:
        assert f"{finding.question} {overview_number(finding)}, n = {finding.n}" in shown
    assert audit.bottom_line.sentence in shown
    assert repr(audit.bottom_line) == f"<BottomLine: {audit.bottom_line.sentence}>"
    card = words_of(audit._repr_html_())
    assert audit.bottom_line.sentence in card
    assert len(audit._repr_html_()) < 30_000
    for finding in audit.findings:
        assert finding.question in card
        assert answer_text(finding) in card
        assert finding.reading in repr(finding)
        assert level_text(finding) in repr(finding)
        assert finding.meaning in words_of(finding._repr_html_())


def test_an_audit_of_hostile_texts_shows_text_alone():
    hostile = make_audit(classes=3)
    assert hostile.findings[0].question in words_of(hostile._repr_html_())
    shown = words_of(hostile.findings[1]._repr_html_())
    assert "[bold]third" in shown
    assert "a<b" in shown


def test_a_level_is_a_sign_and_a_word(audit):
    judged = next(f for f in audit.findings if f.key == "mass_gradient")
    for level, sign in SIGNS.items():
        assert level_text(replace(judged, level=level)) == f"{sign} {level}"
    assert len(set(SIGNS.values())) == len(SIGNS)
    assert level_text(next(f for f in audit.findings if f.key == "adversary")) == "· for comparison"
