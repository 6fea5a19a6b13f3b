"""A single text's level, on tables whose answer is known."""

import math

import pyarrow as pa

from heedmap.experiments.text_levels import text_levels


def level(gone, alone, best=math.nan, probability=1.0, guessing=0.5):
    """The level of a text whose lead is 0.5, where nothing else is said."""
    highlights = {
        "probability": probability,
        "guessing": guessing,
        "gone_map": gone,
        "alone_map": alone,
    }
    tables = {
        "highlights": pa.table({name: [value] for name, value in highlights.items()}),
        "alternatives": pa.table({"gone_best": [best]}),
    }
    return text_levels(tables)


def test_a_text_speaks_for_the_map_where_half_of_the_lead_goes_and_stays():
    assert level(gone=0.3, alone=0.8) == ["for"]
    assert level(gone=0.25, alone=0.75) == ["for"], "half is enough"


def test_one_of_the_two_is_mixed_and_neither_is_against_where_other_words_decide():
    assert level(gone=0.3, alone=0.7) == ["mixed"]
    assert level(gone=0.1, alone=0.8, best=0.3) == ["mixed"]
    assert level(gone=0.1, alone=0.7, best=0.3) == ["against"]


def test_nothing_can_be_told_of_a_text_that_no_words_decide():
    assert level(gone=0.1, alone=0.8, best=0.1) == ["cannot tell"]


def test_a_text_that_was_not_read_again_was_not_asked():
    assert level(gone=math.nan, alone=math.nan) == ["not asked"]
    assert level(gone=0.1, alone=0.8, best=math.nan) == ["not asked"], "nor was the best order"
    assert text_levels({"instances": pa.table({"row": [0]})}) is None
