"""Sub-words of words that are separated already."""

import pytest
from made_translations import sentences

from heedmap.data.pieces import FIRST, Pieces


@pytest.fixture(scope="module")
def pieces():
    return Pieces.learned((side for one in sentences(100) for side in one[:2]), 60)


def test_words_are_what_they_were(pieces):
    for words, *_ in sentences(30, seed=1):
        numbers, at = pieces.encode(words)
        assert pieces.words(numbers) == words
        assert numbers[-1] == Pieces.end
        assert at[-1] == -1
        assert sorted(set(at[:-1])) == list(range(len(words)))
        firsts = [pieces.token(number).startswith(FIRST) for number in numbers[:-1]]
        assert sum(firsts) == len(words)


def test_a_letter_that_was_never_seen_is_unknown_and_its_word_is_kept(pieces):
    numbers, at = pieces.encode(["hund", "ж", "rot"])
    assert "<unk>" in [pieces.token(number) for number in numbers]
    assert set(at) == {0, 1, 2, -1}


def test_the_marks_of_sentences_are_words_where_a_text_has_them(pieces):
    numbers, _ = pieces.encode(["</s>"])
    assert Pieces.end not in numbers[:-1]


def test_the_same_sentences_give_the_same_sub_words(tmp_path, pieces):
    again = Pieces.learned((side for one in sentences(100) for side in one[:2]), 60)
    assert again.json() == pieces.json()
    path = tmp_path / "pieces.json"
    path.write_text(pieces.json(), encoding="utf-8")
    assert Pieces.read(path).encode(["hund", "und"]) == pieces.encode(["hund", "und"])
    assert len(Pieces.read(path)) == len(pieces) <= 60
