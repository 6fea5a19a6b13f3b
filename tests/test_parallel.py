"""Sentences and their translations, from files as people have them; links between their words."""

import json

import pytest
from made_translations import WORDS, sentences, write_tables, write_texts
from wording import refused

from heedmap.data.parallel import load_links, load_parallel


def test_a_text_file_per_language_is_read(tmp_path):
    found = load_parallel(write_texts(tmp_path), "de", "en")
    for name, seed, count in (("train", 0, 60), ("dev", 1, 12), ("test", 2, 12)):
        expected = sentences(count, seed)
        assert found.splits[name].source == [one[0] for one in expected]
        assert found.splits[name].target == [one[1] for one in expected]
        assert found.splits[name].sure is None


def test_two_files_without_splits_are_split(tmp_path):
    write_texts(tmp_path)
    found = load_parallel(tmp_path / "train", "de", "en")
    assert {name: len(pairs) for name, pairs in found.splits.items()} == {
        "train": 48, "dev": 6, "test": 6
    }  # fmt: skip
    together = sorted(" ".join(s) for pairs in found.splits.values() for s in pairs.source)
    assert together == sorted(" ".join(one[0]) for one in sentences(60))


def test_columns_of_a_table_are_read_with_their_links(tmp_path):
    found = load_parallel(write_tables(tmp_path), "de", "en", align="links:en-de")
    for pairs in found.splits.values():
        assert pairs.sure == pairs.possible
        for source, target, links in zip(pairs.source, pairs.target, pairs.sure, strict=True):
            assert len(links) == len(source)
            assert all(WORDS[source[i]] == target[j] for i, j in links)


def test_a_table_in_the_layout_of_the_hub_is_read(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"translation": {"de": " ".join(s), "en": " ".join(t)}} for s, t, _ in sentences(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = load_parallel(path, "en", "de")
    assert sum(len(pairs) for pairs in found.splits.values()) == 30
    assert found.splits["train"].source[0] == sentences(30)[0][1]


def test_sure_links_are_possible_ones_too(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text('{"de": "ein hund", "en": "a dog", "sure": [[0, 0]], "possible": [[1, 1]]}\n')
    for place in (path, tmp_path):
        found = load_links(place, "de", "en", "sure:de-en")
        assert found.sure == [{(0, 0)}]
        assert found.possible == [{(0, 0), (1, 1)}]


def test_long_pairs_are_left_out_and_counted(tmp_path):
    found = load_parallel(write_texts(tmp_path), "de", "en", most_words=5)
    long = sum(len(one[0]) > 5 for one in sentences(60))
    assert found.left_out["train: more than 5 words"] == long
    assert len(found.splits["train"]) == 60 - long


def test_other_links_are_another_corpus(tmp_path):
    write_tables(tmp_path)
    plain, linked = (
        load_parallel(tmp_path, "de", "en", align=align) for align in (None, "links:en-de")
    )
    assert plain.fingerprint() != linked.fingerprint()
    assert plain.fingerprint() == load_parallel(tmp_path, "de", "en").fingerprint()


def _appended(folder, name, text):
    with (folder / name).open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("break_it", "named"),
    [
        (lambda f: _appended(f, "train.de", "hund\n"), ["61", "train.de", "60", "train.en"]),
        (
            lambda f: (_appended(f, "dev.de", "\n"), _appended(f, "dev.en", "dog\n")),
            ["dev.de", "line 13"],
        ),
        (lambda f: (f / "test.en").unlink(), ["test.en", "test"]),
        (lambda f: [(f / f"dev.{end}").unlink() for end in ("de", "en")], ["train, dev and test", "no dev"]),
        (lambda f: (f / "train.en").write_bytes(b"a\xff\n"), ["train.en, line 1", "UTF-8"]),
        (lambda f: [(f / f"test.{end}").write_text("hund\n") for end in ("de", "en")],
         ["2 pairs", "test", "1"]),
    ],
)  # fmt: skip
def test_texts_that_do_not_belong_together_are_refused(tmp_path, break_it, named):
    break_it(write_texts(tmp_path))
    with refused(*named):
        load_parallel(tmp_path, "de", "en")


def test_a_separator_within_a_line_does_not_end_it(tmp_path):
    write_texts(tmp_path)
    text = (tmp_path / "train.de").read_text()
    first = text.splitlines()[0]
    (tmp_path / "train.de").write_text(text.replace(first, first + "\u2028hund", 1))
    found = load_parallel(tmp_path, "de", "en")
    assert found.splits["train"].source[0] == [*first.split(), "hund"]


@pytest.mark.parametrize(
    ("links", "named"),
    [
        ("0-0 2-1", ["link 2-1", "2 words", "3"]),
        ("0-0 1-3", ["link 1-3", "2 words", "3"]),
        ("-1-0", ["0-0", "'-1-0'"]),
        ("0:0", ["0-0 or [0, 0]", "'0:0'"]),
        ([[0, 0, 0]], ["[0, 0]", "[0, 0, 0]"]),
        ([["a", 0]], ["[0, 0]", "['a', 0]"]),
        (3, ["[0, 0]", "3"]),
    ],
)
def test_links_that_cannot_be_are_refused(tmp_path, links, named):
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps({"de": "ein hund", "en": "a small dog", "sure": links}) + "\n")
    with refused("test.jsonl, sure, line 1", *named):
        load_links(path, "de", "en", "sure:de-en")


@pytest.mark.parametrize("align", ["links", "links:de-fr", "no:de-en"])
def test_a_column_of_links_must_say_which_end_is_which(tmp_path, align):
    with refused(f"'{align}'", "COLUMN:de-en or COLUMN:en-de", "de, en, links, sure"):
        load_parallel(write_tables(tmp_path), "de", "en", align=align)


def test_a_language_is_not_its_own_translation(tmp_path):
    with refused("two languages", "de", "--from and --to"):
        load_parallel(write_tables(tmp_path), "de", "de")


def test_a_table_that_is_not_there_is_not_looked_for_elsewhere(tmp_path):
    with refused(tmp_path / "nothing.csv"):
        load_parallel(tmp_path / "nothing.csv", "de", "en")


def test_an_absent_language_is_named_with_those_that_are_there(tmp_path):
    with refused("dev.jsonl", "fr", "de, en, links, sure", "--from and --to"):
        load_parallel(write_tables(tmp_path), "de", "fr")
