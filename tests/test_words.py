import itertools
import math

import numpy as np
import pytest
import torch
from wording import refused

from heedmap.importance.special_tokens import head_entropy, shares
from heedmap.importance.words import own_words, sum_by_word, word_of_positions
from heedmap.importance.words import shares as shares_of_sum


def test_sub_words_belong_to_the_word_they_are_parts_of():
    # [CLS] un believ able films [SEP]
    offsets = [(0, 0), (0, 2), (2, 8), (8, 12), (13, 18), (0, 0)]
    special = [1, 0, 0, 0, 0, 1]
    assert word_of_positions(["unbelievable", " films"], offsets, special) == [-1, 0, 0, 0, 1, -1]


def test_a_space_before_a_word_is_the_words_in_the_span_or_alone():
    pieces = ["a", " film", "\n\nhere"]
    assert word_of_positions(pieces, [(0, 1), (1, 6), (6, 12)], [0, 0, 0]) == [0, 1, 2]
    assert word_of_positions(pieces, [(1, 2), (2, 6), (6, 8), (8, 12)], [0] * 4) == [1, 1, 2, 2]


def test_a_span_across_two_words_counts_for_the_second():
    assert word_of_positions(["ab", "cd", "ef"], [(0, 3), (3, 6), (0, 6)], [0, 0, 0]) == [1, 2, 2]


def test_special_tokens_and_empty_spans_belong_to_no_word():
    assert word_of_positions(["ab"], [(0, 2), (1, 1), (2, 2)], [1, 0, 0]) == [-1, -1, -1]
    assert word_of_positions([], [(0, 0)], [0]) == [-1]
    assert word_of_positions(["ab"], [], []) == []


def test_empty_pieces_have_no_position():
    pieces = ["", "ab", "", "", "cd", ""]
    assert word_of_positions(pieces, [(0, 2), (0, 1), (2, 4), (3, 4)], [0] * 4) == [1, 1, 4, 4]


def test_characters_are_counted_and_not_bytes():
    # One emoji that a byte-level tokenizer cut in three, each with the span of the whole.
    pieces = ["naïve", " 🙂", " 電影"]
    offsets = [(0, 5), (5, 7), (6, 7), (6, 7), (7, 9), (9, 10)]
    assert word_of_positions(pieces, offsets, [0] * 6) == [0, 1, 1, 1, 2, 2]


def test_every_position_is_where_a_slow_search_puts_it():
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        lengths = torch.randint(0, 4, (6,), generator=generator).tolist()
        owner = [word for word, length in enumerate(lengths) for _ in range(length)]
        spans = [(a, b) for a in range(len(owner) + 1) for b in range(a, len(owner) + 1)]
        found = word_of_positions(["x" * length for length in lengths], spans, [0] * len(spans))
        assert found == [owner[b - 1] if a < b else -1 for a, b in spans]


@pytest.mark.parametrize(
    ("pieces", "offsets", "owners", "begin"),
    [
        ([], [], [], []),
        (["a"], [(0, 1)], [0], [0]),
        # GPT-2 has a sub-word for ")." and one for "...".
        (["good", ")", "."], [(0, 4), (4, 6)], [0, 2], [0, 1]),
        ([".", ".", ".", " yes"], [(0, 3), (3, 7)], [2, 3], [0, 3]),
        (["a", " b", "."], [(0, 1), (1, 4)], [0, 2], [0, 1]),
        # Two runs that touch are two words.
        ([".", ".", "!", "!"], [(0, 2), (2, 4)], [1, 3], [0, 2]),
        # Sub-words that overlap make one.
        (["a", "b", "c"], [(0, 2), (1, 3)], [1, 2], [0]),
        # Llama 3 has a sub-word for "." with the line's end behind it: it is the mark's alone.
        (["end", ".", "\n\nNew"], [(0, 3), (3, 6), (6, 9)], [0, 1, 2], [0, 1, 2]),
        # White space alone belongs to the word that it stands before.
        (["a", "  b"], [(0, 1), (1, 2), (2, 4)], [0, 1, 1], [0, 1]),
        # A word that the tokenizer drops has no sub-word to share.
        (["a", " \u200b", " b"], [(0, 1), (3, 5)], [0, 2], [0, 1, 2]),
    ],
)  # fmt: skip
def test_words_that_share_a_sub_word_are_one(pieces, offsets, owners, begin):
    assert word_of_positions(pieces, offsets, [0] * len(offsets)) == owners
    assert own_words(pieces, offsets, [0] * len(offsets)) == begin
    assert own_words(pieces, offsets, [1] * len(offsets)) == list(range(len(pieces)))


def test_no_position_holds_visible_characters_of_two_words_once_they_are_merged():
    rng = np.random.default_rng(0)
    for _ in range(200):
        pieces = ["".join(rng.choice(list("ab. "), n)) for n in rng.integers(1, 4, 8)]
        text = "".join(pieces)
        cuts = [0, *sorted(rng.choice(np.arange(1, len(text)), 5, replace=False)), len(text)]
        spans = [(int(a), int(b)) for a, b in itertools.pairwise(cuts)]
        begin = own_words(pieces, spans, [0] * len(spans))
        ends = [*begin[1:], len(pieces)]
        merged = ["".join(pieces[a:b]) for a, b in zip(begin, ends, strict=True)]
        assert "".join(merged) == text
        owner = [word for word, piece in enumerate(merged) for _ in piece]
        for (start, end), word in zip(
            spans, word_of_positions(merged, spans, [0] * len(spans)), strict=True
        ):
            held = {owner[i] for i in range(start, end) if not text[i].isspace()}
            assert held <= {word}
        # And no more than needed: every place where words were joined lies inside some span.
        first = list(itertools.accumulate(map(len, pieces), initial=0))
        for word in set(range(1, len(pieces))) - set(begin):
            assert any(start < first[word] < end for start, end in spans)


def test_spans_outside_the_text_and_missing_marks_are_refused():
    for span in [(0, 3), (2, 1), (-1, 1)]:
        with refused(span, "2 characters", kind=ValueError):
            word_of_positions(["ab"], [span], [0])
    with refused("1 spans", "2 marks", kind=ValueError):
        word_of_positions(["ab"], [(0, 1)], [0, 0])


def test_values_are_summed_over_the_positions_of_each_word():
    values = torch.tensor([[1.0, 2.0, 4.0, 8.0, 16.0], [1.0, 2.0, 4.0, 8.0, torch.nan]])
    words = torch.tensor([[-1, 0, 0, 2, -1], [1, 0, 1, -1, -1]])
    assert sum_by_word(values, words, 3).tolist() == [[6, 0, 8], [2, 5, 0]]


def test_what_stands_before_the_batch_is_summed_alike():
    values = torch.rand(3, 4, 2, 7, dtype=torch.float64)
    words = torch.randint(-1, 5, (2, 7))
    together = sum_by_word(values, words, 5)
    assert together.shape == (3, 4, 2, 5)
    for b in range(2):
        for w in range(5):
            slow = values[..., b, words[b] == w].sum(-1)
            assert torch.allclose(together[..., b, w], slow)


def test_a_sum_hands_its_gradient_to_the_positions_of_the_word():
    values = torch.rand(1, 4, requires_grad=True)
    totals = sum_by_word(values, torch.tensor([[0, 0, -1, 1]]), 2)
    (totals * torch.tensor([2.0, 3.0])).sum().backward()
    assert values.grad.tolist() == [[2, 2, 0, 3]]


def test_no_positions_and_no_words_sum_to_nothing():
    assert sum_by_word(torch.rand(2, 0), torch.zeros(2, 0, dtype=torch.long), 2).tolist() == [
        [0, 0],
        [0, 0],
    ]
    assert sum_by_word(torch.rand(1, 2), torch.full((1, 2), -1), 0).shape == (1, 0)


@pytest.mark.parametrize("word", [-2, 2])
def test_words_that_are_not_there_are_refused(word):
    with refused("-1 and 1", f"{min(0, word)} to {max(0, word)}", kind=ValueError):
        sum_by_word(torch.rand(1, 2), torch.tensor([[0, word]]), 2)


def test_words_share_what_falls_on_words_and_nothing_stays_nothing():
    values = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    assert shares_of_sum(values).tolist() == [[0.25, 0.75, 0], [0, 0, 0]]
    assert shares_of_sum(values[0]).tolist() == [0.25, 0.75, 0]


# Where attention goes by kind of token.


def test_shares_are_the_mass_on_each_kind_by_hand():
    attention = torch.tensor([[[[0.5, 0.1, 0.2, 0.2], [0.1, 0.3, 0.2, 0.4]]]])
    keys = torch.tensor([[1, 0, 0, 2]])
    both = shares(attention, keys, torch.tensor([[True, True]]), 4)
    assert both[0, 0].tolist() == pytest.approx([0.4, 0.3, 0.3, 0])
    second = shares(attention, keys, torch.tensor([[False, True]]), 4)
    assert second[0, 0].tolist() == pytest.approx([0.5, 0.1, 0.4, 0])


def test_shares_are_those_of_a_slow_loop_whatever_padding_holds():
    attention = torch.randn(3, 2, 6, 6).softmax(-1)
    keys = torch.tensor([[1, 0, 0, 3, 0, 2], [1, 0, 2, -1, -1, -1], [-1, -1, 1, 0, 0, 2]])
    queries = keys >= 0
    attention = attention.masked_fill(~queries[:, None, :, None], torch.nan)
    found = shares(attention, keys, queries, 4)
    for b in range(3):
        for h in range(2):
            for kind in range(4):
                rows = attention[b, h][queries[b]][:, keys[b] == kind]
                slow = rows.double().sum(-1).mean().item()
                assert found[b, h, kind].item() == pytest.approx(slow, abs=1e-6)


def test_uniform_attention_has_the_expected_shares():
    keys = torch.tensor([[1, 0, 0, 0, 2], [1, 2, -1, -1, -1]])
    queries = keys >= 0
    attention = (queries / queries.sum(1, keepdim=True))[:, None, None].expand(2, 3, 5, 5)
    found = shares(attention, keys, queries, 3)
    expected = torch.tensor([[3 / 5, 1 / 5, 1 / 5], [0, 1 / 2, 1 / 2]], dtype=torch.float64)
    assert torch.allclose(found, expected[:, None].expand(2, 3, 3))
    entropies = head_entropy(attention, queries)
    assert torch.allclose(entropies[:, 0], torch.tensor([math.log(5), math.log(2)]).double())


def test_entropy_is_averaged_over_real_queries():
    attention = torch.tensor([[[[1.0, 0.0], [0.5, 0.5], [torch.nan, torch.nan]]]])
    found = head_entropy(attention, torch.tensor([[True, True, False]]))
    assert found.item() == pytest.approx(math.log(2) / 2)


def test_a_text_of_padding_has_no_shares():
    keys, queries = torch.full((1, 2), -1), torch.zeros(1, 2, dtype=torch.bool)
    attention = torch.rand(1, 1, 2, 2)
    assert shares(attention, keys, queries, 2).isnan().all()
    assert head_entropy(attention, queries).isnan().all()


@pytest.mark.parametrize("kind", [-2, 3])
def test_kinds_that_are_not_there_are_refused(kind):
    with refused("-1 and 2", f"{min(0, kind)} to {max(0, kind)}", kind=ValueError):
        shares(torch.rand(1, 1, 2, 2), torch.tensor([[0, kind]]), torch.ones(1, 2) > 0, 3)
