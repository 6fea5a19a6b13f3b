"""What the columns of a table mean: labels of any kind, texts, ids, rows without a label."""

import datetime
import enum
import json
import re
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from wording import refused, warned

import heedmap as hm
from heedmap.data.load import load_corpus
from heedmap.data.markup import markup_in, without_html
from heedmap.data.text_names import text_name
from heedmap.settings.data import DataSettings

TEXTS = [f"This is film number {i} to me" for i in range(60)]


class Verdict(enum.StrEnum):
    GOOD = "good"
    BAD = "bad"


class Loud(str):
    def __str__(self):
        return "loud"


class Numbered(enum.IntEnum):
    ONE = 1
    TWO = 2


class Plain(enum.Enum):
    A = "a"


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([np.str_("b"), np.str_("a")], ["a", "b"]),
        ([Verdict.GOOD, Verdict.BAD], ["bad", "good"]),
        ([Loud("x"), Loud("y")], ["x", "y"]),
        ([Numbered.ONE, Numbered.TWO], ["1", "2"]),
        ([np.int64(3), np.float32(1.0)], ["1", "3"]),
        ([Decimal("1.10"), Decimal("1.20")], ["1.10", "1.20"]),
        ([True, np.bool_(False)], ["False", "True"]),
        ([datetime.date(2024, 5, 1), pd.Timestamp("2024-05-02")], ["2024-05-01", "2024-05-02"]),
        (np.array(["2024-05-01", "2024-05-02"], "datetime64[ns]"), ["2024-05-01", "2024-05-02"]),
    ],
)  # fmt: skip
def test_labels_of_every_kind_give_a_run_that_opens_with_the_same_classes(
    labels, classes, tmp_path
):
    corpus = hm.load(TEXTS, labels=[*labels] * 30)
    assert corpus.classes == classes
    again = load_corpus(corpus.settings, in_memory=kept(corpus, tmp_path))
    assert (again.classes, again.fingerprint()) == (classes, corpus.fingerprint())
    assert again.splits["test"].keys == corpus.splits["test"].keys
    assert again.settings == corpus.settings


def kept(corpus, folder):
    from heedmap.data.in_memory import kept_in

    for name, content in corpus.in_memory.files().items():
        (folder / name).write_bytes(content)
    return kept_in(folder)


@pytest.mark.parametrize(
    "label", [{"a"}, ["a", "b"], {"a": 1}, Plain.A, object(), pd.Timedelta(1, "D"), b"a"]
)
def test_other_objects_are_no_labels(label):
    for make in (
        lambda: hm.load(TEXTS, labels=[*(["x", "y"] * 29), "x", label]),
        lambda: hm.load(pd.DataFrame({"text": TEXTS, "label": [*(["x", "y"] * 29), "x", label]})),
    ):
        with refused("index 59", "label") as caught:
            make()
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_list_of_one_label_is_a_label_and_of_two_is_several(tmp_path, name):
    rows = [{"text": text, "label": [("a", "b")[i % 2]]} for i, text in enumerate(TEXTS)]
    path = tmp_path / name
    save = partial(write, path) if name == "a.jsonl" else lambda x: pd.DataFrame(x).to_parquet(path)
    save(rows)
    assert hm.load(path).classes == ["a", "b"]
    rows[7]["label"] = ["a", "b"]
    save(rows)
    with refused(name, "label", "['a', 'b']"):
        hm.load(path)


@pytest.mark.parametrize(
    ("labels", "several"),
    [
        (["a|b", "a", "b"], "a|b"),
        (["a", "b", "b, a"], "b, a"),
        (["['a']", "['a', 'b']", "[]"], "['a']"),
    ],
)
def test_several_labels_in_one_text_are_refused(tmp_path, labels, several):
    rows = [{"text": text, "label": labels[i % 3]} for i, text in enumerate(TEXTS)]
    with refused("a.jsonl", "label", f"({several})", "--label-column"):
        hm.load(write(tmp_path / "a.jsonl", rows))


def test_labels_with_marks_in_them_are_labels(tmp_path):
    rows = [
        {"text": t, "label": ("Sci/Tech", "Arts, Music", "a|b")[i % 3]} for i, t in enumerate(TEXTS)
    ]
    assert hm.load(write(tmp_path / "a.jsonl", rows)).classes == ["Arts, Music", "Sci/Tech", "a|b"]


def test_truth_values_and_numbers_stay_apart_and_are_named():
    with warned("'True' 20", "'1' 20", "'0' 20"):
        corpus = hm.load(TEXTS, labels=[True, 1, 0] * 20)
    assert corpus.classes == ["0", "1", "True"]


def test_rows_without_a_label_are_left_out_and_counted_for_models_and_for_own_models(tmp_path):
    labels = ("-", "yes", "no", "", None)
    path = write(
        tmp_path / "a.jsonl", [{"text": t, "label": labels[i % 5]} for i, t in enumerate(TEXTS)]
    )
    for settings in ({}, {"training": False, "raw": True}):
        corpus = load_corpus(DataSettings(source=str(path), **settings), ["no", "yes"])
        assert corpus.classes == ["no", "yes"]
        assert corpus.left_out == {"label missing": 24, "label missing (-)": 12}


def test_a_test_split_without_labels_is_said_and_another_is_audited(tmp_path):
    rows = [{"text": t, "label": i % 2} for i, t in enumerate(TEXTS)]
    write(tmp_path / "train.jsonl", rows)
    write(tmp_path / "test.jsonl", [{**row, "label": -1} for row in rows])
    corpus = load_corpus(DataSettings(source=str(tmp_path), training=False), ["no", "yes"])
    assert "test: 60 texts without a label; those of train are audited" in corpus.notes
    assert hm.load(tmp_path).left_out == {"test: label missing (-1)": 60}


@pytest.mark.parametrize("options", [{}, {"label": "label"}])
def test_a_test_split_without_a_label_column_is_left_out_and_said(tmp_path, options):
    rows = [{"sentence": t, "label": i % 2} for i, t in enumerate(TEXTS)]
    write(tmp_path / "train.jsonl", rows)
    write(tmp_path / "dev.jsonl", rows[:20])
    write(tmp_path / "test.jsonl", [{"index": i, "sentence": t} for i, t in enumerate(TEXTS)])
    with warned("test: ", "label", "in test.jsonl", "60 texts"):
        corpus = hm.load(tmp_path, **options)
    assert corpus.left_out == {"test: label missing": 60}
    assert [len(corpus.splits[name]) for name in ("train", "dev", "test")] == [48, 20, 12]
    audited = load_corpus(DataSettings(source=str(tmp_path), training=False, **options), ["0", "1"])
    assert "test: 60 texts without a label; those of dev are audited" in audited.notes
    write(tmp_path / "train.jsonl", [{"sentence": t, "stars of it": 1} for t in TEXTS])
    with refused("train.jsonl", "label", "sentence, stars of it", "--label-column"):
        hm.load(tmp_path, **options)


def test_tables_beside_the_splits_are_said_not_to_be_read(tmp_path):
    rows = [{"text": t, "label": i % 2} for i, t in enumerate(TEXTS)]
    for name in ("train", "test", "train_part2", "eval"):
        write(tmp_path / f"{name}.jsonl", rows)
    write(tmp_path / "dataset_info.json", [{}])
    with warned("eval.jsonl, train_part2.jsonl", "test.jsonl, train.jsonl"):
        hm.load(tmp_path)


def test_a_split_column_is_read_without_its_blanks_and_needs_texts_to_train_on(tmp_path):
    rows = [
        {"text": t, "label": i % 2, "split": ("train ", "Test")[i // 40]}
        for i, t in enumerate(TEXTS)
    ]
    corpus = hm.load(write(tmp_path / "a.jsonl", rows))
    assert (len(corpus.splits["test"]), corpus.left_out) == (20, {})
    with refused("a.jsonl", "train", "20 of test"):
        hm.load(write(tmp_path / "a.jsonl", rows[40:]))


def test_texts_are_named_by_their_line_row_index_or_own_id(tmp_path):
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    options = {"training": False}

    def first(source, **more):
        return (
            load_corpus(DataSettings(source=str(source), **options, **more), ["0", "1"])
            .splits["test"]
            .keys[1]
        )

    assert first(write(tmp_path / "a.jsonl", rows)) == "line 2"
    (tmp_path / "a.csv").write_text('text,label\n"two\nlines",0\nb,1\n')
    assert first(tmp_path / "a.csv") == "line 4"
    named = [{**row, "ID": f"x{i}"} for i, row in enumerate(rows)]
    assert first(write(tmp_path / "b.jsonl", named)) == "x1"
    assert first(tmp_path / "b.jsonl", id="text") == TEXTS[1]
    frame = pd.DataFrame(rows, index=[f"r{i}" for i in range(60)])
    assert "index r3" in [key for split in hm.load(frame).splits.values() for key in split.keys]
    assert (text_name("line 4"), text_name("x1")) == ("line 4", "id x1")


def test_ids_that_repeat_or_are_missing_are_noted_and_the_place_is_named_too(tmp_path):
    ids = ["a", "a", None, *range(57)]
    rows = [{"text": t, "label": i % 2, "id": ids[i]} for i, t in enumerate(TEXTS)]
    settings = DataSettings(source=str(write(tmp_path / "a.jsonl", rows)), training=False)
    corpus = load_corpus(settings, ["0", "1"])
    assert corpus.splits["test"].keys[:4] == ["a (line 1)", "a (line 2)", "line 3", "0"]
    assert corpus.notes[0].startswith("ids in column id: 1 missing and 1 of several rows ('a')")


def test_an_id_that_reads_as_the_place_of_another_text_is_not_its_name(tmp_path):
    ids = ["line 3", "b", None, "c", "c", "c (line 5)", *range(54)]
    rows = [{"text": t, "label": i % 2, "id": ids[i]} for i, t in enumerate(TEXTS)]
    settings = DataSettings(source=str(write(tmp_path / "a.jsonl", rows)), training=False)
    corpus = load_corpus(settings, ["0", "1"])
    keys = corpus.splits["test"].keys
    assert keys[:3] == ["line 3 (line 1)", "b", "line 3"]
    assert keys[3:6] == ["c (line 4)", "c (line 5)", "c (line 5) (line 6)"]
    assert "1 missing and 3 of several rows ('c', 'line 3', 'c (line 5)')" in corpus.notes[0]


@pytest.mark.parametrize("name", [{"$oid": "65a0"}, ["a"], b"a"])
def test_ids_that_are_no_texts_are_refused_where_they_are_named_and_else_not_read(name, tmp_path):
    frame = pd.DataFrame({"id": [name] * 60, "text": TEXTS, "label": [0, 1] * 30})
    frame.to_parquet(tmp_path / "a.parquet")
    sources = [frame] if isinstance(name, bytes) else [frame, tmp_path / "a.parquet"]
    for source in sources:
        with warned("id", "the column is not read"):
            corpus = hm.load(source)
        assert corpus.settings.id is None
        assert re.match("(index|row) ", corpus.splits["test"].keys[0])
        with refused("id", "got", type(name).__name__):
            hm.load(source, id="id")


@pytest.mark.parametrize(
    ("form", "what"),
    [("[['a'], ['{}']]", "brackets"), ("('a', '{}')", "brackets"), ("[a, {}]", "brackets"),
     ("[1, 2]", "brackets"), ("'a {}'", "single quotes")],
)  # fmt: skip
def test_texts_that_are_read_with_their_brackets_or_single_quotes_are_noted(form, what):
    with warned("column text", what, "60 of 60"):
        corpus = hm.load([form.format(text) for text in TEXTS], labels=[0, 1] * 30)
    assert corpus.notes[0].startswith("texts in column text that are in")
    few = [form.format(text) if i < 20 else text for i, text in enumerate(TEXTS)]
    assert not any("these marks" in note for note in hm.load(few, labels=[0, 1] * 30).notes)


def test_the_settings_name_the_columns_that_were_guessed(tmp_path):
    rows = [{"Review": text, "stars": i % 2, "ID": i} for i, text in enumerate(TEXTS)]
    settings = hm.load(write(tmp_path / "a.jsonl", rows)).settings
    assert (settings.text, settings.label, settings.query, settings.id) == (
        "Review",
        "stars",
        None,
        "ID",
    )


def test_a_name_that_is_written_exactly_comes_before_one_in_another_case(tmp_path):
    frame = pd.DataFrame(
        {"Text": "x", "ID": "y", "Label": "z", "text": TEXTS, "id": range(60), "label": [0, 1] * 30}
    )
    settings = hm.load(frame).settings
    assert (settings.text, settings.label, settings.id) == ("text", "label", "id")


@pytest.mark.parametrize("kind", ["csv", "xlsx", "frame"])
def test_columns_of_one_name_are_refused_only_where_they_are_read(tmp_path, kind):
    rows = [[text, i % 2, "a", "b"] for i, text in enumerate(TEXTS)]
    frame = pd.DataFrame(rows, columns=["text", "label", "x", "x"])
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    source = frame if kind == "frame" else path
    assert hm.load(source).classes == ["0", "1"]
    for text in ("x", "text,x"):
        with refused("column x", "2"):
            hm.load(source, text=text)


def test_blanks_around_the_names_of_columns_do_not_matter(tmp_path):
    rows = [{"title": "One", "body": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    path = write(tmp_path / "a.jsonl", rows)
    joined = hm.load(path, text="title, body")
    assert joined.splits["test"].tokens == hm.load(path, text="title,body").splits["test"].tokens
    assert hm.load(path, text="body ", label=" label").settings.text == "body"
    with refused("text column (content)", "title, body, label", "--text-column"):
        hm.load(path, text="title, content")


@pytest.mark.parametrize(
    "tag",
    [
        "<br />", "<BR>", "< br / >", "</p>", "&amp;", "&#39;", "<a href='x'>", '<img src=x onerror="a>b">',
        "<iframe>", "<video controls>", "<time>", "<wbr>", "<details open>", "<!DOCTYPE html>", "<o:p>",
        "<a href=http://example.org/?q=1&b=2>", "<img src='a'alt='b' />", "<![endif]>", "<hr size=1 noshade>",
        "<a href=>", "</o:p>", "<div\n data-of>", '<font size="-2"\\ color="#666666">',
    ],
)  # fmt: skip
def test_markup_is_counted_and_turned_into_text_where_that_is_asked(tmp_path, tag):
    rows = [{"text": f"{text}{tag}x", "label": i % 2} for i, text in enumerate(TEXTS)]
    path = write(tmp_path / "a.jsonl", rows)
    with warned("60 of 60 texts", markup_in(tag), "--markup text"):
        hm.load(path)
    text = hm.load(path, markup="text").splits["train"].written[0]
    assert not set("<>#;") & set(text)
    assert ("&" in text) == (tag == "&amp;")


def test_what_is_no_markup_stays():
    kept = ["I <3 it", "a < b > c", "R&D", "<user> said <unk>", "x & y; z", "<s>"]
    kept += ["if a<b and c>d", "x < time or y > 3", "p<i until i>9", "<http://a.org>"]
    for text in kept:
        assert without_html(text) == text
    assert without_html("&lt;br /&gt;a<script>b < c</script>") == "a"


@pytest.mark.parametrize(
    "write_words",
    [list, str, json.dumps, lambda words: str(np.array(words))],
    ids=["list", "str", "json", "numpy"],
)
def test_lists_of_words_are_texts_with_spaces(tmp_path, write_words):
    rows = [{"text": write_words(["it's", "film", str(i)]), "label": i % 2} for i in range(60)]
    path = write(tmp_path / "a.jsonl", rows)
    with warned("column text", "lists of words"):
        corpus = hm.load(path)
    assert corpus.splits["test"].written[0].startswith("it's film ")


@pytest.mark.parametrize(
    "write_word",
    [lambda word: json.dumps(word).replace("/", r"\/"), ascii],
    ids=["json", "ascii"],
)
def test_escapes_in_lists_that_are_written_as_text_are_those_of_json_or_of_python(
    tmp_path, write_word
):
    words = ["so", "\N{GRINNING FACE}", "a/b", "it's"]
    rows = [
        {"text": f"[{', '.join(map(write_word, [*words, str(i)]))}]", "label": i % 2}
        for i in range(60)
    ]
    with warned("column text", "lists of words"):
        corpus = hm.load(write(tmp_path / "a.jsonl", rows))
    assert corpus.splits["test"].written[0].startswith("so \N{GRINNING FACE} a/b it's ")


@pytest.mark.parametrize("text", [r'["a", "\ud83d"]', r"['a', '\ud83d']"])
def test_half_a_character_in_a_list_that_is_written_as_text_is_refused(tmp_path, text):
    rows = [{"text": "['a', 'b']", "label": "1"}, {"text": text, "label": "0"}]
    with refused("a.jsonl, line 2", "column text"):
        hm.load(write(tmp_path / "a.jsonl", rows))


@pytest.mark.parametrize("other", [None, 3, ["b"]])
def test_a_list_that_holds_more_than_words_is_named_by_its_own_row(tmp_path, other):
    rows = [{"text": ["a", "b"], "label": i % 2} for i in range(6)]
    rows[3]["text"] = ["a", other]
    with refused("line 4", "column text", f"got {other}"):
        hm.load(write(tmp_path / "a.jsonl", rows))
