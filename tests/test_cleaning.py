import pytest

from heedmap.data.tokens import clinical_words, without_markup, words_without_digits


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n ", []),
        ("Two   WORDS\r\n\there", ["two", "words", "here"]),
        ("on 4 May1999, B12!", ["on", "qqq", "qqq", ",", "qqq", "!"]),
        ("don't follow-up", ["don't", "follow-up"]),
        ("7.5 mg", ["qqq", ".", "qqq", "mg"]),
        ("a 3-day trip", ["a", "qqq", "trip"]),
        ("cm² Größe ٣", ["cm²", "größe", "qqq"]),
        ("so...", ["so", ".", ".", "."]),
    ],
)
def test_text_becomes_lower_case_tokens_and_numbers_become_qqq(text, tokens):
    assert words_without_digits(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("Seen at [**Hospital 18**] today", ["seen", "at", "<DE>", "today"]),
        ("[**2101-1-1**][**2102-2-2**]", ["<DE>", "<DE>"]),
        ("a[**Name (NI)\n 3 **]b", ["a", "<DE>", "b"]),
        ("<[**x**]>", ["<", "<DE>", ">"]),
        ("<DE>", ["<", "de", ">"]),
        ("[** open and [**closed**]", ["[", "*", "open", "and", "<DE>"]),
    ],
)
def test_what_was_de_identified_is_one_token(text, tokens):
    assert clinical_words(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("PAIN ------ none", ["pain", "-", "none"]),
        ("a . .\n. b", ["a", ".", "b"]),
        ("________\nDr", ["_", "dr"]),
        ("so?!?! no", ["so", "?", "!", "?", "!", "no"]),
        ("aaa 11 11", ["aaa", "qqq", "qqq"]),
        ("éé", ["éé"]),
        ("(( 2.5 ))", ["(", "qqq", ".", "qqq", ")"]),
    ],
)
def test_a_repeated_mark_in_a_note_stands_once(text, tokens):
    assert clinical_words(text) == tokens


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", ""),
        ("good.<br /><br />Bad", "good.  Bad"),
        ("a<BR>b<br/>c", "a b c"),
        ('an <i>odd</i> <a href="x">film</a>', "an  odd   film "),
        ("a<!-- <b> -->b", "a b"),
        ("I <3 it, 1 < 2 > 0", "I <3 it, 1 < 2 > 0"),
        ("cut off <br", "cut off <br"),
    ],
)
def test_markup_becomes_white_space(text, plain):
    assert without_markup(text) == plain
