"""What a reader sees as one character is never split, and other texts have the tokens that they had."""

import re
from itertools import pairwise

import numpy as np
import pytest
import regex
from making import write_rows

from heedmap.data.load import as_written, load
from heedmap.data.tokens import _MAY_JOIN, _graphemes, cut, pieces, words

PLAIN = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")  # the rule for texts of a code point per character
FAMILY, THUMB, FLAG, KEY = "👨\u200d👩\u200d👧", "👍🏽", "🇩🇪", "1\ufe0f\u20e3"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (f"Our {FAMILY}!", ["our", FAMILY, "!"]),
        (f"ok{THUMB}{THUMB}", ["ok", THUMB, THUMB]),
        (f"{FLAG}🇫🇷 {SCOTLAND}wins", [FLAG, "🇫🇷", SCOTLAND, "wins"]),
        ("🇩🇪🇫", [FLAG, "🇫"]),
        (f"press {KEY} now", ["press", KEY, "now"]),
        ("I ❤️ it", ["i", "❤️", "it"]),
        ("cafe\u0301s, naïve", ["cafe\u0301s", ",", "naïve"]),
        ("l'e\u0301te\u0301", ["l'e\u0301te\u0301"]),
        ("İstanbul", ["i\u0307stanbul"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("بِسْمِ", ["بِسْمِ"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        (" \u0301x", ["\u0301", "x"]),
        ("\u0600 1 \u06002", ["\u0600", "1", "\u06002"]),
        ("", []),
        ("\u200d", ["\u200d"]),
    ],
)
def test_characters_of_several_code_points_stay_whole(text, tokens):
    assert words(text) == tokens
    assert [piece.strip().lower() for piece in pieces(text, "words")] == tokens
    assert "".join(pieces(text, "words")) == text


def test_texts_without_such_characters_have_the_same_tokens_by_either_rule():
    joins = regex.compile(
        r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}\p{GCB=Prepend}\p{GCB=Regional_Indicator}\p{GCB=L}"
        r"\p{GCB=V}\p{GCB=T}]"
    )
    plain = [chr(code) for code in range(0x110000) if not _MAY_JOIN.search(chr(code))]
    assert len(plain) > 30_000
    assert not joins.search("".join(plain))
    text = "".join(f"a{c}b {c}{c}'{c} " for c in plain)
    assert _graphemes()[0].findall(text) == PLAIN.findall(text)


PARTS = [
    *"a'-’!ßΣİIé\t\n\u2028  1_", "\u0301", "\u200d", "👍", "🏽", "👨", "🇩", "🇪", "\ufe0f", "\u20e3", "\x1c",
    "ำ", "ส", "\u0600", "ᄀ", "ᅡ", "각", "\u00ad", "क", "्", "\u0d4e",
]  # fmt: skip


def test_tokens_are_whole_characters_of_the_text_wherever_it_is_cut():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        text = "".join(rng.choice(PARTS, rng.integers(0, 12)))
        found, lower = pieces(text, "words"), words(text)
        assert "".join(found) == (text if text.strip() else "")
        assert len(found) == len(lower)
        assert lower == [token for word in text.split() for token in words(word)]
        assert not any(re.search(r"\s", token) for token in lower)
        for count in (1, 3):
            expected = found if count >= len(found) else found[:count]
            cut_short = pieces(cut(text, "words", count), "words")
            assert "".join(cut_short).rstrip() == "".join(expected).rstrip()
        ends = np.cumsum([0, *map(len, found)])
        assert all(text[a:b] == piece for (a, b), piece in zip(pairwise(ends), found, strict=True))


@pytest.mark.parametrize(
    "part", ["e\u0301", "🇩", "👨\u200d", "e\u0301'", "\u0600", " \u0301", "\u0301"]
)
def test_long_runs_take_no_longer_than_their_length(part):
    # Quadratic, this would take hours.
    assert sum(map(len, words(part * 200_000))) >= 200_000


def test_what_people_marked_stays_on_its_words(tmp_path):
    text = f"So {FAMILY}{THUMB} a cafe\u0301 I ❤️"
    rows = [{"text": text, "label": i % 2, "evidence_spans": [[1, 2], [3, 4]]} for i in range(40)]
    corpus = load(write_rows(tmp_path / "a.jsonl", rows))
    for each in (corpus, as_written(corpus)):
        split = each.splits["test"]
        marked = [t.strip() for t, m in zip(split.tokens[0], split.rationale[0], strict=True) if m]
        assert marked == [FAMILY, THUMB, "cafe\u0301"]
