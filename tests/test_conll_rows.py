"""CoNLL files, with a word per line: read as lists of words and labels, or refused by the line."""

import gzip

import numpy as np
import pytest
from tiny_askers import plain
from tiny_transformers import tiny_tokenizer
from wording import refused

import heedmap as hm
from heedmap.data.conll_rows import read_conll
from heedmap.data.readers import read_rows
from heedmap.huggingface.logging import quiet

NEWS = """-DOCSTART- -X- -X- O

# sent_id = 1
a DT B-NP O
film NN I-NP PER
. . O O

bad JJ B-NP LOC
# NN I-NP O


the DT B-NP O
plot NN I-NP PER"""


def values(path):
    rows = read_rows(path)
    return [*zip(rows.values("tokens"), rows.values("ner_tags"), strict=True)]


def test_a_file_of_words_is_read_in_sentences(tmp_path):
    path = tmp_path / "news.conll"
    path.write_text(NEWS)
    assert values(path) == [
        (["a", "film", "."], ["O", "PER", "O"]),
        (["bad", "#"], ["LOC", "O"]),
        (["the", "plot"], ["O", "PER"]),
    ]
    rows = read_conll(path)
    assert [rows.place_of(i).rpartition(", ")[2] for i in range(3)] == [
        "line 4",
        "line 8",
        "line 12",
    ]
    assert rows.notes == [
        "1 -DOCSTART- line is left out",
        "1 comment (a line before a sentence that begins with #) is left out",
    ]
    twice = tmp_path / "twice.conll"
    twice.write_text(NEWS + "\n" + NEWS)
    assert read_conll(twice).notes == [
        "2 -DOCSTART- lines are left out",
        "2 comments (lines before a sentence that begin with #) are left out",
    ]
    packed = tmp_path / "news.bio.gz"
    packed.write_bytes(gzip.compress(NEWS.replace("\n", "\r\n").encode("utf-8-sig")))
    assert values(packed) == values(path)


def test_any_sentences_are_read_as_they_were_written(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(20):
        between = "\t" if number % 2 else "  "
        width = int(rng.integers(2, 6))
        sentences = [
            [[f"w{x}" for x in rng.integers(0, 99, width)] for _ in range(rng.integers(1, 7))]
            for _ in range(rng.integers(1, 9))
        ]
        lines = ["\n".join(between.join(cells) for cells in words) for words in sentences]
        path = tmp_path / f"{number}.iob"
        path.write_text(
            ("\n" * int(rng.integers(2, 4))).join(lines) + "\n" * int(rng.integers(0, 3))
        )
        assert values(path) == [
            ([cells[0] for cells in words], [cells[-1] for cells in words]) for words in sentences
        ]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("a O\nfilm NN PER\n", ["line 2", "2 columns", "line 1", "3", "film NN PER"]),
        ("a X O\n\nfilm PER\n", ["line 3", "3 columns", "2"]),
        ("a\tO\nfilm\t\n", ["line 2", "its label"]),
        ("a\nfilm\n", ["line 1", "its label", "one column"]),
        ("\t".join(["1", "It", *"_" * 8]), ["line 1", "CoNLL-U", "FORM"]),
        ("1-2\t" + "\t".join(["It", *"_" * 8]), ["line 1", "CoNLL-U"]),
        ("# only a comment\n\n", ["no rows", "expected words with labels"]),
        ("", ["empty", "expected words with labels"]),
    ],
)
def test_a_damaged_file_is_refused_by_its_line(tmp_path, content, named):
    path = tmp_path / "news.conll"
    path.write_text(content)
    with refused("news.conll", *named):
        read_rows(path)


def test_it_is_no_file_of_texts_and_only_read_as_utf_8(tmp_path):
    path = tmp_path / "news.conll"
    path.write_text("Ad\u00e9 PER\n", "latin-1")
    with refused("news.conll", "line 1", "UTF-8"):
        hm.load(path)
    with refused("--encoding cp1252", "CoNLL", "UTF-8"):
        hm.load(path, encoding="cp1252")
    path.write_text("Ada PER\n")
    with refused("news.conll", "no text column", "CoNLL", "models of token classification"):
        hm.load(path)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_tagger_is_audited_on_it_as_on_lists(tmp_path):
    with quiet():
        plain("bert", of_masks=False).save_pretrained(tmp_path / "model")
        tiny_tokenizer().save_pretrained(tmp_path / "model")
    conll, lists = tmp_path / "news.conll", tmp_path / "news.jsonl"
    conll.write_text(NEWS)
    lists.write_text(
        '{"tokens": ["a", "film", "."], "ner_tags": ["O", "PER", "O"]}\n'
        '{"tokens": ["bad", "#"], "ner_tags": ["LOC", "O"]}\n'
        '{"tokens": ["the", "plot"], "ner_tags": ["O", "PER"]}\n'
    )
    splits = [
        hm.open_model(tmp_path / "model", path, progress=False).corpus.splits["test"]
        for path in (conll, lists)
    ]
    assert splits[0].tokens == splits[1].tokens
    assert splits[0].targets.tolist() == splits[1].targets.tolist() == [1, 0, 1]
    assert splits[0].labels.tolist() == splits[1].labels.tolist()
    assert splits[0].keys == ["line 4, word 2", "line 8, word 1", "line 12, word 2"]
