"""Dirty data are seen: what is odd about labels and texts is said once, with counts, and changes nothing."""

import os
import subprocess
import sys
import time
import unicodedata
import warnings
from dataclasses import replace

import pytest
from made_audits import make_audit
from making import write_rows
from wording import refused, warned

import heedmap as hm
from heedmap.data.load import as_written, load, load_corpus
from heedmap.data.quality import folded, notes
from heedmap.data.rows import Row
from heedmap.report.wording import classes_text
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import quoted


def rows_of(labels, texts=None):
    """A row per label, each text another one."""
    texts = texts or [f"text number {i}" for i in range(len(labels))]
    return [
        Row(str(i), t.split(), a, written=t)
        for i, (t, a) in enumerate(zip(texts, labels, strict=True))
    ]


def said(labels=("a", "b"), texts=None, *, raw=False, **parts):
    """The notes of a corpus of these rows, or of these splits."""
    parts = parts or {"train": rows_of(labels, texts)}
    classes = sorted({row.label for part in parts.values() for row in part})
    number = {name: i for i, name in enumerate(classes)}
    return notes(parts, (), classes, number, DataSettings(source="mine.csv", raw=raw))


def clean(count=40, classes="ab"):
    names = [classes[i % len(classes)] for i in range(count)]
    return rows_of(names)


@pytest.mark.parametrize("texts", [[], ["one"], ["one", "two"]])
def test_of_clean_texts_nothing_is_said(texts):
    assert said(["a"] * len(texts), texts) == []
    assert said(train=clean(80)[:40], test=clean(80)[40:]) == []


def test_a_file_that_is_clean_is_read_without_a_word(csv_file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(csv_file).notes == []


def test_nul_characters_in_texts_are_counted():
    (note,) = said(["a", "b"], ["g\0o\0o\0d\0", "bad"])
    assert note.startswith(r"NUL characters in 1 of 2 texts (first: 'g\x00o\x00o\x00d\x00')")
    (note,) = said(["a"], ["g\0d"])
    assert note.startswith(r"NUL characters in 1 of 1 text (first: 'g\x00d')")


# --- labels -----------------------------------------------------------------------------------------------


def test_labels_that_are_equal_as_numbers_are_named_in_any_split():
    noted = said(labels=["1", "1.0", "0", "0.0", "0.0"])
    assert (
        "labels that are equal as numbers: '0' 1, '0.0' 2 stay apart; '1' 1, '1.0' 1 stay apart"
        in noted
    )
    assert not any("equal" in note for note in said(labels=["1", "01", "2", "a"]))
    rows = rows_of(["0", "1"] * 20)
    others = rows_of(["1.0", "0.0"])
    number = {"0": 0, "1": 1}
    (note,) = notes({"train": rows}, others, ["0", "1"], number, DataSettings(source="mine.csv"))
    assert note.startswith("labels that are equal as numbers: '0' 20, '0.0' 1 stay apart; '1' 20,")
    number |= {"0.0": 0, "1.0": 1}  # of a model's outputs
    (note, *_) = notes(
        {"test": [*rows, *others]}, (), "01", number, DataSettings(source="mine.csv")
    )
    assert "'0' 20, '0.0' 1 are one class of the model" in note


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Positive", "positive"),
        ("very good", "very  good"),
        ("very good", "very\xa0good"),
        ("positive", "pósitive"),
        ("pósitive", unicodedata.normalize("NFD", "pósitive")),
        ("straße", "STRASSE"),
        ("good", "go\u200bod"),
        ("ok", "ｏｋ"),
    ],
)
def test_labels_that_differ_only_in_how_they_are_written_are_named_and_stay_apart(one, other):
    assert folded(one) == folded(other)
    (note,) = said([one, one, other])
    assert note.startswith("labels that differ only by case, white space, accents or Unicode form:")
    assert note.endswith(" stay apart")
    shown = sorted([(one, 2), (other, 1)])
    assert ", ".join(f"{quoted(name)} {count}" for name, count in shown) in note
    assert len({quoted(one), quoted(other)}) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [("good", "bad"), ("กุ", "กู"), ("か", "が"), ("कि", "की"), ("1", "01"), ("a b", "ab")],
)
def test_other_words_are_other_labels(one, other):
    assert said([one, other]) == []


def test_labels_that_a_model_reads_as_one_class_are_said_to_be_one(tmp_path):
    rows = [{"text": f"text {i}", "label": ("No", "no", "yes")[i % 3]} for i in range(30)]
    path = str(write_rows(tmp_path / "a.jsonl", rows))
    corpus = load_corpus(DataSettings(source=path, training=False), ["no", "yes"])
    (note,) = corpus.notes
    assert note.endswith("'No' 10, 'no' 10 are one class of the model")


def test_the_classes_of_a_model_that_no_text_has_are_named(tmp_path):
    rows = [{"text": f"text {i}", "label": ("no", "yes")[i % 2]} for i in range(60)]
    path = str(write_rows(tmp_path / "a.jsonl", rows))
    corpus = load_corpus(DataSettings(source=path, training=False), ["no", "maybe", "yes"])
    assert corpus.notes == ["1 of 3 classes has no test text: 'maybe'"]
    assert corpus.class_counts() == {"test": [30, 0, 30]}


def test_white_space_around_a_label_is_dropped_and_counted(tmp_path):
    rows = [{"text": f"text {i}", "label": ("no ", " yes", "no")[i % 3]} for i in range(60)]
    corpus = load(write_rows(tmp_path / "a.csv", rows))
    assert corpus.classes == ["no", "yes"]
    assert corpus.left_out == {"labels trimmed of white space (kept)": 40}


@pytest.mark.parametrize("word", ["NaN", "nan", "None", "null", "N/A", "NA", "-", "#N/A", "<NA>"])
def test_words_for_a_missing_value_are_counted_as_labels_and_as_texts(word):
    assert said(["a", word, word]) == [
        f"labels that say a value is missing are classes: '{word}' 2"
    ]
    first, again, _ = said("abab", ["good film", f" {word} ", word, f"{word} and more"])
    assert first == f"texts that only say that a value is missing: 2 in train ('{word}' 2)"
    assert again == "texts that repeat another: 1 of 4 in train (kept)"


def test_a_text_of_such_a_word_is_found_without_its_spelling_too():
    row = Row("0", ["null"], "a")
    assert len(said(train=[row])) == 1
    assert said(train=[Row("0", ["None", " at", " all"], "a")], raw=True) == []


def test_classes_of_few_training_texts_or_no_test_text_are_named():
    train = rows_of(["a"] * 30 + ["b"] * 30 + ["c"] * 9)
    test = rows_of(["a"] * 5 + ["b"] * 5, [f"other {i}" for i in range(10)])
    assert said(train=train, test=test) == [
        "1 of 3 classes has fewer than 10 training texts: 'c' 9",
        "1 of 3 classes has no test text: 'c'",
    ]
    many = rows_of([f"c{i % 30}" for i in range(60)])
    (note,) = said(train=many, test=many)
    assert note.endswith("'c0' 2, 'c1' 2, 'c10' 2, 'c11' 2, 'c12' 2 and 25 more")


def test_many_numbers_may_be_an_amount():
    def numbers(count, each=20):
        return rows_of([str(i % count) for i in range(count * each)])

    assert not [n for n in said(train=numbers(20), test=numbers(20)) if "numbers" in n]
    (note,) = [n for n in said(train=numbers(21), test=numbers(21)) if "numbers" in n]
    assert note.startswith("21 different numbers as labels (0 to 20), each a class of its own")
    (note,) = [
        n for n in said([f"{i % 21 / 2}".replace(".", ",") for i in range(800)]) if "numb" in n
    ]
    assert note.startswith("21 different numbers as labels (0,0 to 10,0)")
    names = [f"{i % 40}th" for i in range(800)]
    assert not [n for n in said(names) if "numbers" in n]


def test_of_a_short_file_with_a_label_per_row_the_column_is_doubted():
    assert said("abc", ["one", "two", "three"]) == []
    (note,) = said([f"id{i}" for i in range(12)])
    assert note.startswith("12 different labels in 12 rows ('id0' 1, 'id1' 1,")
    assert note.endswith("is this the label column?")


# --- texts ------------------------------------------------------------------------------------------------


def test_texts_that_repeat_are_counted_by_split_and_contradictions_named():
    train = clean(60)
    train += rows_of("aab", ["text number 0", "text number 1", "text number 1"])
    test = rows_of("ab", ["a new one", "a new one"])
    again, labels = said(train=train, test=test)
    assert again == "texts that repeat another: 3 of 63 in train, 1 of 2 in test (kept)"
    assert labels == "texts that have different labels: 2 (first: 'text number 1', 'b' 2, 'a' 1)"


def test_the_same_text_asked_something_else_is_another_text():
    asked = [Row(str(i), ["where"], "ab"[i % 2], query=[str(i)]) for i in range(60)]
    assert not [note for note in said(train=asked, test=asked[:2]) if "labels" in note]


def test_what_a_line_shows_of_the_data_cannot_break_it():
    (note,) = said(["a\x1b[31m\u2028b", "A\x1b[31m\u2028b", "x" * 99])
    assert note.isprintable()
    assert len(note) < 200


@pytest.mark.parametrize(
    "text",
    [
        "我喜欢这部电影，因为它很好。",
        "好吃",
        "この映画はとても面白かったです。",
        "หนังเรื่องนี้สนุกมาก ฉันชอบมันจริงๆ",
        "ຂ້ອຍມັກຮູບເງົາເລື່ອງນີ້ຫຼາຍ",
        "ខ្ញុំចូលចិត្តភាពយន្តនេះណាស់",
        "ဒီရုပ်ရှင်ကိုကျွန်တော်အရမ်းကြိုက်တယ်",
    ],
)
@pytest.mark.parametrize("tokenizer", ["words", "spaces", "sentences"])
@pytest.mark.parametrize("raw", [False, True])
def test_texts_without_spaces_between_words_are_refused_with_the_remedy(
    tmp_path, text, tokenizer, raw
):
    rows = [{"text": text + "!" * i, "label": i % 2} for i in range(30)]
    path = str(write_rows(tmp_path / "a.jsonl", rows))
    with refused("30 of 30 texts", "--tokenizer spaces"):
        load_corpus(DataSettings(source=path, tokenizer=tokenizer, raw=raw))


@pytest.mark.parametrize(
    "text",
    [
        "我 喜欢 这 部 电影 ， 因为 它 很 好 。",
        "この 映画 は とても 面白かった です 。",
        "หนัง เรื่อง นี้ สนุก มาก ฉัน ชอบ มัน จริงๆ",
        "ဒီ ရုပ်ရှင် ကို ကျွန်တော် အရမ်း ကြိုက် တယ်",
        "이 영화는 정말 재미있었다",
        "यह फ़िल्म बहुत अच्छी थी",
        "A film by 黑澤明, and a good one",
    ],
)
def test_texts_with_spaces_between_words_are_read(text):
    assert said("abab", [f"{text} {i}" for i in range(4)]) == []


def test_a_few_texts_without_spaces_are_counted():
    texts = [f"an English text {i}" for i in range(45)]
    (note,) = said("ab" * 25, [*texts, *(f"我喜欢这部电影{i}" for i in range(5))])
    assert note.startswith("5 of 50 texts without spaces between their words (as Chinese,")
    with refused("6 of 50 texts"):
        said("ab" * 25, [*texts[:-1], *(f"我喜欢这部电影{i}" for i in range(6))])


def test_many_long_texts_are_looked_through_in_no_time():
    words = [f"wörd{i}" for i in range(1000)]
    texts = [words[i % 700 : i % 700 + 240] for i in range(5000)]
    rows = [Row(str(i), text, "ab"[i % 2], written=" ".join(text)) for i, text in enumerate(texts)]
    started = time.process_time()
    said(train=rows)
    assert time.process_time() - started < 1  # about 0.1


# --- once, and wherever the numbers are shown -------------------------------------------------------------


@pytest.fixture
def dirty(tmp_path):
    """Texts of two classes with every flaw that is not refused, in a file that is not UTF-8."""
    rows = [{"text": f"wörd{i} and word{i + 1}", "label": "ab"[i % 2]} for i in range(120)]
    rows += [{"text": "nan", "label": "A"}, {"text": "wörd0 and word1", "label": "b"}] * 10
    path = write_rows(tmp_path / "dirty.csv", rows)
    path.write_bytes(path.read_text(encoding="utf-8").encode("cp1252"))
    return path


def said_by(record):
    return [str(one.message) for one in record]


def test_a_corpus_says_each_once_and_shows_it(dirty):
    with warned("dirty.csv: ") as record:
        corpus = load(dirty)
    lines = said_by(record)
    assert [line.removeprefix(f"{dirty}: ") for line in lines[: len(corpus.notes)]] == corpus.notes
    assert all("\n" not in line for line in lines)
    assert len(set(lines)) == len(lines) == len(corpus.notes) + 1
    assert lines[-1].startswith(f"{dirty}: test texts that are also in other splits: ")
    assert corpus.notes[0].startswith("not UTF-8; read as Windows-1252")
    for note in corpus.notes:
        assert note[:60] in repr(corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_written(corpus).notes == corpus.notes
        assert load_corpus(corpus.settings).notes == corpus.notes, (
            "who reads again warns of nothing"
        )


def test_the_report_counts_the_texts_of_each_class_by_split_if_the_run_did():
    audit = make_audit(n=4)
    assert classes_text(audit) == "a<b, plain"  # of an older run
    counts = {"train": [7, 5], "dev": [1, 0], "test": [2, 3]}
    counted = replace(audit, about={**audit.about, "class_counts": counts})
    assert classes_text(counted) == "a<b 7/1/2, plain 5/0/3 (train/dev/test)"
    names = [f"class{'x' * 50}{i}" for i in range(30)]
    many = replace(counted, classes=names, about={"class_counts": {"test": list(range(30))}})
    assert classes_text(many).startswith(f"30: class{'x' * 35}… 1, ")
    assert classes_text(many).endswith("… 12 and 17 more (test); 1 without a text")


@pytest.mark.slow
def test_one_command_says_each_once_and_the_report_shows_them(dirty, tmp_path):
    def run(*arguments):
        code = "from heedmap.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
            env={**os.environ, "COLUMNS": "200"}, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    quick = ["--encoder", "average", "--epochs", "1", "--permutations", "2", "--instances", "8"]
    first = run("audit", "--data", dirty, "--out", "run", *quick)
    audit = hm.open_audit(tmp_path / "run")
    notes = hm.open_run(tmp_path / "run").corpus.notes
    assert len(notes) == 6
    assert audit.about["notes"][:6] == notes
    assert notes[0].startswith("not UTF-8; read as Windows-1252")
    page = (tmp_path / "run" / "report.html").read_text()
    card = " ".join(first.stdout.replace("│", " ").split())
    for note in notes:
        assert first.stderr.count(f"heedmap: note: {dirty}: {note}") == 1
        assert first.stderr.count(note) == 1
        assert note[:50] in card
        assert note[:30].replace("'", "&#39;") in page
    counts = audit.about["class_counts"]
    assert list(counts) == ["train", "dev", "test"]
    assert sum(map(sum, counts.values())) == 140
    again = run("audit", "--run", "run", "--permutations", "2", "--instances", "8")
    for start in ("labels that differ", "not UTF-8; read as"):
        assert start not in again.stderr
        assert start in again.stdout


@pytest.mark.parametrize("training", [True, False])
def test_a_class_that_the_data_set_or_the_model_names_is_no_missing_value(tmp_path, training):
    rows = [
        {"text": f"this is the tweet of number {chr(97 + i % 26) * (1 + i // 26)}", "label": i % 2}
        for i in range(60)
    ]
    path = str(write_rows(tmp_path / "adr.csv", rows))
    settings = DataSettings(source=path, dataset="adr", training=training)
    corpus = load_corpus(settings, ["none", "reaction"])
    assert corpus.classes == ["none", "reaction"]
    assert not [note for note in corpus.notes if "missing" in note]


def test_a_models_class_is_no_missing_value(tmp_path):
    rows = [{"text": f"text number {i}", "label": ("none", "some")[i % 2]} for i in range(40)]
    settings = DataSettings(source=str(write_rows(tmp_path / "a.csv", rows)), training=False)
    corpus = load_corpus(settings, ["none", "some"])
    assert not [note for note in corpus.notes if "missing" in note]
