"""Folders with a folder of texts per class."""

import os
import sys

import pytest
from wording import refused, warned

from heedmap.data.load import load, load_corpus
from heedmap.settings.data import DataSettings


def folders(root, counts, text="It was {} film {}."):
    for place, count in counts.items():
        (root / place).mkdir(parents=True)
        for i in range(count):
            name = place.split("/")[-1]
            (root / place / f"{i}_7.txt").write_text(text.format(name, i), encoding="utf-8")
    return root


def test_a_folder_per_class_is_read_and_split(tmp_path):
    corpus = load(folders(tmp_path, {"pos": 20, "neg": 20}))
    assert corpus.classes == ["neg", "pos"]
    assert [len(corpus.splits[name]) for name in ("train", "dev", "test")] == [28, 4, 8]
    for split in corpus.splits.values():
        for key, label, text in zip(split.keys, split.labels, split.written, strict=True):
            name, file = key.split("/")
            assert name == corpus.classes[label]
            assert (tmp_path / name / file).read_text() == text


def test_imdb_is_read_as_it_is_published(tmp_path):
    places = ("train/pos", "train/neg", "test/pos", "test/neg", "train/unsup")
    folders(tmp_path, dict.fromkeys(places, 10), "As a {} review it has more than six words: {}.")
    (tmp_path / "train" / "urls_pos.txt").write_text("http://example.org\n" * 10)
    (tmp_path / "train" / "pos" / "notes.md").write_text("about")
    (tmp_path / "test" / ".DS_Store").write_bytes(b"\0")
    (tmp_path / "about.txt").write_text("about")
    corpus = load(tmp_path)
    assert [len(corpus.splits[name]) for name in ("train", "dev", "test")] == [16, 4, 20]
    assert corpus.left_out == {
        "train: not a .txt file": 1,
        "train: not in a class's folder": 1,
        "train: unsup: texts without a class": 10,
        "not in a class's folder": 1,
    }
    assert load(tmp_path, dataset="imdb").classes == ["negative", "positive"]
    tested = load_corpus(DataSettings(source=str(tmp_path), training=False), ["neg", "pos"])
    assert len(tested.splits["test"]) == 20
    assert tested.left_out == {"not in a class's folder": 1}


def test_texts_that_are_not_directly_in_a_class_folder_are_counted(tmp_path):
    folders(tmp_path, {"pos": 10, "neg": 10, "pos/2023": 3, "pos/2023/a": 2, "neg/old": 1})
    folders(tmp_path, {"more/of/them": 4, "pos/.hidden": 9})
    (tmp_path / "loose.TXT").write_text("of no class")
    (tmp_path / "labels.csv").write_text("no text")
    corpus = load(tmp_path)
    assert sum(map(len, corpus.splits.values())) == 20
    assert corpus.left_out == {
        "in a folder within a class's folder": 6,
        "not in a class's folder": 5,
    }


def test_texts_of_windows_are_read_with_a_word_of_warning(tmp_path):
    folders(tmp_path, {"pos": 10, "neg": 10})
    (tmp_path / "pos" / "1_7.txt").write_bytes("schön".encode("cp1252"))
    with warned("1 of 20 texts", "pos/1_7.txt", "Windows-1252") as notes:
        guessed = load(tmp_path)
    assert [str(note.message) for note in notes] == [f"{tmp_path}: {guessed.notes[0]}"]
    assert load(tmp_path, encoding="cp1252").fingerprint() == guessed.fingerprint()
    (tmp_path / "pos" / "1_7.txt").write_bytes(b"a\x81\x00")
    with refused("1_7.txt, line 1", "UTF-8", "--encoding"):
        load(tmp_path)


@pytest.mark.parametrize("order", ["le", "be"])
def test_texts_in_utf_16_are_read_as_those_of_a_table_are(tmp_path, order):
    plain = load(folders(tmp_path / "plain", {"pos": 10, "neg": 10})).fingerprint()
    folders(tmp_path / "wide", {"pos": 10, "neg": 10})
    for mark in ("", "\ufeff"):
        for path in (tmp_path / "wide").rglob("*.txt"):
            text = (tmp_path / "plain" / path.relative_to(tmp_path / "wide")).read_text()
            path.write_bytes(f"{mark}{text}".encode(f"utf-16-{order}"))
        if mark:
            assert load(tmp_path / "wide").fingerprint() == plain
            continue
        with refused("neg/0_7.txt", "UTF-8", "--encoding utf-16-le"):
            load(tmp_path / "wide")
        assert load(tmp_path / "wide", encoding=f"utf-16-{order}").fingerprint() == plain


def test_an_accent_at_the_end_of_a_text_is_one_of_windows_too(tmp_path):
    folders(tmp_path, {"pos": 10, "neg": 10})
    (tmp_path / "pos" / "1_7.txt").write_bytes("un joli café".encode("cp1252"))
    with warned("1 of 20 texts", "pos/1_7.txt", "Windows-1252"):
        load(tmp_path)
    (tmp_path / "pos" / "1_7.txt").write_bytes("un joli café".encode()[:-1])  # cut within a letter
    with refused("1_7.txt, line 1", "UTF-8"):
        load(tmp_path)


def test_files_without_an_ending_are_texts_where_a_class_has_no_others(tmp_path):
    folders(tmp_path, {"pos": 10, "neg": 10})
    whole = load(tmp_path).fingerprint()
    for path in tmp_path.glob("*/*.txt"):
        path.rename(path.with_suffix(""))
    with warned("without an ending", "20"):
        assert load(tmp_path).classes == ["neg", "pos"]
    for path in tmp_path.glob("*/*_7"):
        path.rename(path.with_suffix(".txt"))
    (tmp_path / "pos" / "README").write_text("about")
    corpus = load(tmp_path)
    assert (corpus.fingerprint(), corpus.left_out) == (whole, {"not a .txt file": 1})


def test_what_has_no_two_classes_is_refused(tmp_path):
    folders(tmp_path, {"pos": 10})
    with refused("train.csv", ".txt", "pos"):
        load(tmp_path)
    folders(tmp_path, {"neg": 10})
    for option, value in (("text-column", "text"), ("separator", ";")):
        with refused(f"--{option}", value):
            load(tmp_path, **{option.removesuffix("-column"): value})
    folders(tmp_path, {"train/a": 2, "Training/a": 2})
    with refused("Training", "train"):
        load(tmp_path)


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
@pytest.mark.parametrize("names", [(b"caf\xe9", b"0.txt"), (b"pos", b"\xe9.txt")])
def test_names_that_are_not_utf_8_are_refused_in_one_line(tmp_path, names):
    for folder, name in (names, (b"neg", b"0.txt")):
        place = os.path.join(os.fsencode(tmp_path), folder)
        os.mkdir(place)
        with open(os.path.join(place, name), "w") as file:
            file.write("a text")
    with refused(repr(os.fsdecode(os.path.join(*names)))[1:-1], "UTF-8") as caught:
        load(tmp_path)
    assert str(caught.value).isascii()
