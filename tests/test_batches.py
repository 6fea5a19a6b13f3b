import gzip

import numpy as np
import pytest
import torch
from wording import refused

from heedmap.data.batches import Encoded, bucketed_batches, scatter_rows, sorted_batches
from heedmap.data.vocabulary import EOS, SOS, UNK, Vocabulary, read_vectors


def test_words_are_numbered_alphabetically_from_four_up():
    vocabulary = Vocabulary.build([["b", "a"], ["a", "c", "c"]], min_df=1)
    assert vocabulary.words == ["a", "b", "c"]
    assert vocabulary.encode(["c", "a", "new"]).tolist() == [SOS, 6, 4, UNK, EOS]
    assert len(vocabulary) == 7


def test_the_cut_counts_texts_and_not_occurrences():
    assert Vocabulary.build([["b", "a"], ["a", "c", "c"]], min_df=2).words == ["a"]


def test_a_batch_is_padded_to_its_longest_text():
    encoded = Encoded([np.array([SOS, 5, EOS]), np.array([SOS, 4, 5, 6, EOS])], np.array([1, 0]))
    batch = encoded.batch([0, 1])
    assert batch.ids.tolist() == [[SOS, 5, EOS, 0, 0], [SOS, 4, 5, 6, EOS]]
    assert batch.mask.tolist() == [[True, False, False], [True, True, True]]
    assert batch.lengths.tolist() == [1, 3]
    assert batch.labels.tolist() == [1, 0]


def test_sorted_batches_hold_every_row_once_within_the_bound():
    lengths = np.random.default_rng(0).integers(1, 50, 200)
    batches = sorted_batches(lengths, 300)
    assert sorted(np.concatenate(batches).tolist()) == list(range(200))
    assert all(len(rows) * lengths[rows].max() <= 300 for rows in batches)


def test_a_text_longer_than_the_bound_is_a_batch_of_its_own():
    assert [b.tolist() for b in sorted_batches(np.array([900, 5, 800]), 100)] == [[1], [2], [0]]
    assert sorted_batches(np.array([], dtype=np.int64), 100) == []


def test_bucketed_batches_hold_every_row_once_and_similar_lengths_together():
    lengths = np.random.default_rng(0).integers(1, 100, 500)
    batches = bucketed_batches(lengths, 32, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    assert [len(b) for b in batches].count(32) == 15
    spread = max(np.ptp(lengths[b]) for b in batches)
    assert spread < 40


def test_scattered_rows_are_back_in_the_order_of_the_split():
    rows = [torch.tensor([2, 0]), torch.tensor([1])]
    values = [torch.tensor([[20.0], [0.0]]), torch.tensor([[10.0]])]
    assert scatter_rows(rows, values).flatten().tolist() == [0, 10, 20]


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
def test_vectors_of_known_words_are_read_and_others_are_zero(tmp_path, name):
    text = b"b 1 2 3\nzzz 7 7 7\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    matrix, found = read_vectors(path, Vocabulary(["a", "b"]))
    assert found == 1
    assert matrix.tolist() == [[0.0] * 3] * 5 + [[1.0, 2.0, 3.0]]


def test_the_header_of_word2vec_is_passed_over(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("2 3\na 1 2 3\n")
    assert read_vectors(path, Vocabulary(["a"]))[1] == 1


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, []),
        (b"", ["vectors"]),
        (b"a 1 2\nb 1 x\n", ["line 2", "2 finite numbers"]),
        (b"a 1 2\nb 1 2 3\n", ["line 2", "2 finite numbers"]),
        (b"a 1 2\nb 1\n", ["line 2", "2 finite numbers"]),
        (b"a 1 2\nb nan 1\n", ["line 2", "2 finite numbers"]),
        (b"c 1 2\n", ["2 words"]),
        (b"\xff\xfe", []),
    ],
)
def test_bad_vectors_are_one_clear_line(tmp_path, content, named):
    path = tmp_path / "v.txt"
    if content is not None:
        path.write_bytes(content)
    with refused(path, *named):
        read_vectors(path, Vocabulary(["a", "b"]))
