"""CoNLL-U files, good and broken; trees, and the grammar that draws them."""

import gzip
from itertools import product

import numpy as np
import pytest

from heedmap.data.conllu import APART, EMPTY, read_conllu
from heedmap.data.dependency_grammar import DependencyGrammar
from heedmap.data.trees import ROOT, DependencyTree, fault_of, fingerprint, hold_out
from heedmap.errors import InputError


def line(number, form, head, relation="dep", misc="_"):
    return "\t".join([str(number), form, "_", "_", "_", "_", str(head), relation, "_", misc])


GOOD = [
    "# text = It works.",
    line(1, "It", 2, "nsubj"),
    line(2, "works", 0, "root", "SpaceAfter=No"),
    line(3, ".", 2, "punct"),
]


@pytest.fixture
def write(tmp_path):
    def write(lines, name="trees.conllu", ending="\n"):
        path = tmp_path / name
        path.write_bytes((ending.join(lines) + ending).encode())
        return path

    return write


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_sentence_is_read_with_its_spaces_heads_and_relations(write, ending):
    trees, changed = read_conllu(write([*GOOD, "", *GOOD], ending=ending))
    tree = DependencyTree(("It", " works", "."), (1, ROOT, 1), ("nsubj", "root", "punct"))
    assert trees == [tree, tree]
    assert tree.scored == [0]
    assert changed == {}


def test_a_mark_of_the_byte_order_and_gzip_are_read(write, tmp_path):
    content = ("\ufeff" + "\n".join(GOOD)).encode()
    (tmp_path / "a.conllu").write_bytes(content)
    (tmp_path / "b.conllu.gz").write_bytes(gzip.compress(content))
    plain, packed = (read_conllu(tmp_path / name)[0] for name in ("a.conllu", "b.conllu.gz"))
    assert plain == packed != []


def test_words_of_one_token_stand_as_in_the_text_where_their_forms_make_it(write):
    together = [
        line("1-2", "don't", "_", "_"),
        line(1, "do", 3),
        line(2, "n't", 3),
        line(3, "go", 0, "root"),
    ]
    apart = [line("1-2", "del", "_", "_"), line(1, "de", 3), line(2, "el", 3), line(3, "mar", 0)]
    trees, changed = read_conllu(write([*together, "", *apart]))
    assert trees[0].pieces == ("do", "n't", " go")
    assert trees[1].pieces == ("de", " el", " mar")
    assert changed == {APART: 1}


def test_words_that_are_not_in_the_text_are_left_out_and_counted(write):
    lines = [line(1, "He", 2), line("1.1", "was", "_", "_"), line(2, "ill", 0)]
    trees, changed = read_conllu(write(lines))
    assert trees[0].words == ["He", "ill"]
    assert changed == {EMPTY: 1}


@pytest.mark.parametrize(
    ("number", "text", "reason"),
    [
        (2, "1\tIt\t2", "10 columns"),
        (2, GOOD[1].replace("\t", " "), "got 1 in"),
        (2, line(2, "It", 2), "expected 1 as ID, got '2'"),
        (2, line("x", "It", 2), "expected 1 as ID"),
        (2, line(1, "", 2), "FORM"),
        (2, line(1, " ", 2), "FORM"),
        (2, line(1, "It", "_"), "HEAD, got '_'"),
        (2, line(1, "It", "-1"), "HEAD"),
        (2, line(1, "It", "٢"), "HEAD"),
        (2, line(1, "It", 2, "_"), "DEPREL"),
        (2, line("2-3", "It", "_"), "a span of words from 1 on, got 2-3"),
        (3, "# late", "an empty line before the next sentence"),
    ],
)
def test_a_broken_line_is_one_error_that_names_it(write, number, text, reason):
    lines = [*GOOD]
    lines[number - 1 : number if text[0] != "#" else number - 1] = [text]
    with pytest.raises(InputError) as caught:
        read_conllu(write(lines))
    assert f"line {number}: " in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("heads", "reason"),
    [
        ((2, 1), "no word is the root"),
        ((0, 0), "words 1, 2 are all roots"),
        ((0, 3), "word 2 has the head 3 of 2 words"),
        ((0, 3, 2), "words 2, 3 are in a circle"),
        ((1, 0), "words 1 are in a circle"),
    ],
)
def test_heads_that_are_no_tree_are_refused_with_the_sentence_s_line(write, heads, reason):
    lines = [*GOOD, "", *(line(i, "w", head) for i, head in enumerate(heads, 1))]
    with pytest.raises(InputError, match=f"sentence of line 6: expected a tree; {reason}"):
        read_conllu(write(lines))


def test_files_without_sentences_endless_lines_and_other_bytes_are_refused(write, tmp_path):
    with pytest.raises(InputError, match="expected sentences in CoNLL-U, got none"):
        read_conllu(write(["# nothing", ""]))
    with pytest.raises(InputError, match="line 2: expected ten columns, got an endless line"):
        read_conllu(write(["#", "x" * 70_000]))
    (tmp_path / "latin").write_bytes(b"1\t\xe9\n")
    with pytest.raises(InputError, match="line 1: not UTF-8"):
        read_conllu(tmp_path / "latin")
    with pytest.raises(InputError, match="no such file"):
        read_conllu(tmp_path / "absent")
    with pytest.raises(InputError):
        read_conllu(tmp_path)


@pytest.mark.parametrize("size", range(5))
def test_heads_are_a_tree_if_every_word_reaches_the_one_root(size):
    for heads in product(range(-2, size + 1), repeat=size):
        assert (fault_of(heads) is None) == is_tree(heads), heads


def is_tree(heads):
    def reaches(word):
        for _ in heads:
            word = heads[word]
            if word == ROOT:
                return True
            if not 0 <= word < len(heads):
                return False
        return False

    return heads.count(ROOT) == 1 and all(reaches(word) for word in range(len(heads)))


def test_sentences_that_learn_and_judge_are_different_ones():
    trees = DependencyGrammar(np.random.default_rng(0)).draw(60)
    split = hold_out([*trees, *trees[:20]], 40, 15, np.random.default_rng(1))
    texts = [[tuple(tree.words) for tree in part] for part in split]
    assert [len(part) for part in texts] == [40, 15]
    assert len({*texts[0], *texts[1]}) == 55
    few = hold_out(trees[:8], 40, 15, np.random.default_rng(1))
    assert [len(part) for part in few] == [6, 2]
    assert hold_out([], 40, 15, np.random.default_rng(1)) == ([], [])


def test_the_grammar_draws_trees_the_same_ones_from_the_same_state():
    first, second, third = (
        DependencyGrammar(np.random.default_rng(i)).draw(200) for i in (3, 3, 4)
    )
    assert fingerprint(first) == fingerprint(second) != fingerprint(third)
    assert not any(fault_of(tree.heads) for tree in first)
    # Projective: between a word and its head stands nothing that depends on a word outside.
    for tree in first:
        for word, head in enumerate(tree.heads):
            low, high = sorted((word, head)) if head != ROOT else (word, word)
            assert all(low <= tree.heads[i] <= high for i in range(low + 1, high))
    relations = {relation for tree in first for relation in tree.relations}
    assert relations >= {"det", "nsubj", "dobj", "pobj", "prep", "ccomp", "mark", "auxpass", "prt"}
    assert not [w for tree in first for w in "".join(tree.pieces).split() if w in ("a,", "..")]


def test_no_fixed_offset_solves_a_relation_of_the_grammar():
    offsets = {}
    for tree in DependencyGrammar(np.random.default_rng(0)).draw(2000):
        for word in tree.scored:
            offsets.setdefault(tree.relations[word], []).append(tree.heads[word] - word)
    for name, values in offsets.items():
        assert np.bincount(np.array(values) + 50).max() / len(values) < 0.97, name
