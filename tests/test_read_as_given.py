"""Texts are read as transformers reads what the user gave: strings, cut strings, lists of words, masks."""

import copy
import json
import pickle
import random
import re

import numpy as np
import pytest
import torch
from tokenizer_layouts import LAYOUTS, model_of, tokenizer_of
from wording import refused

import heedmap as hm
from heedmap.data.asked_words import asked_text
from heedmap.data.load import load_corpus
from heedmap.data.texts import Asked, CutWord, Pair, exchanged, joined, shortened
from heedmap.data.tokens import pieces, spaced
from heedmap.huggingface.inputs import token_ids
from heedmap.huggingface.targets import answer_at_targets, mask_of
from heedmap.huggingface.tasks import Task
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.truncation import truncated
from heedmap.huggingface.verification import verify
from heedmap.importance.deletions import reread_without_each
from heedmap.settings.data import DataSettings
from heedmap.settings.models import TransformerSettings
from heedmap.terminal.output import Note

CLOSE = {"atol": 1e-5, "rtol": 0}
WORDS = [
    "film", "unwatchable", "the", "plot", "is", "(so)", "bad).", "family's", "7.5", "don't", "😀", "中文字",
    "terribly-sad", "it...", "x", "naïve",
]  # fmt: skip
SPACE = [
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\n\n",
    " \n",
    "\n ",
    "\t",
    "\u00a0",
    "   ",
    "\r\n",
    "\u3000",
    "",
]
BLANK = ["\u00a0", "  ", "\n"]
LABELS = ["class0", "class1", "class2"]


def written(rng, count):
    """A text with white space of every kind."""
    words = (rng.choice(WORDS) + rng.choice(SPACE) for _ in range(count))
    return rng.choice(["", " ", "\n"]) + "".join(words)


def cut_examples(rng):
    """Texts, pairs and lists of words in our form, and as they are given to a tokenizer."""
    text, other = written(rng, 24), written(rng, rng.randint(1, 20))
    sides = [pieces(part, "words") for part in (text, other)]
    words = [rng.choice([*WORDS, *BLANK, "New York", "Ada ", " Bob"]) for _ in range(24)]
    yield pieces(text, "spaces"), (text,), {}
    yield sides[0], (text,), {}
    yield joined(*sides), (text, other), {}
    yield Pair(*sides, query_first=True), (other, text), {}
    yield Asked(spaced(words), 3, None, True), (words,), {"is_split_into_words": True}


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cut_text_has_the_ids_of_the_tokenizers_truncation(layout, side):
    tokenizer, rng, cuts = tokenizer_of(layout, 10**6, truncation_side=side), random.Random(0), 0
    for _ in range(12):
        for text, given, options in cut_examples(rng):
            longest = rng.randint(8, 30)
            expected = tokenizer(*given, truncation=True, max_length=longest, **options).input_ids
            assert token_ids(tokenizer, [text]) == [tokenizer(*given, **options).input_ids]
            if (cut := truncated(tokenizer, text, longest)) is None:
                continue
            cuts += 1
            assert token_ids(tokenizer, [cut.text]) == [expected]
            if isinstance(text, list):
                kept = pickle.loads(pickle.dumps(cut.text))
                assert token_ids(tokenizer, [kept]) == [expected]
                assert len(kept) == cut.end - cut.start
                whole = given[0]
                assert whole.startswith("".join(kept)) or side == "left"
                assert whole.endswith("".join(kept)) or side == "right"
    assert cuts > 40


def classifier(layout, task=Task.TEXTS, outputs=2, **options):
    """A model as transformers loads it, its tokenizer, and the same on trial."""
    model = model_of(layout, task.value, outputs)
    tokenizer, asked = tokenizer_of(layout, **options), copy.deepcopy(model)
    if task.is_asked_of_words:
        answer_at_targets(asked, of_masks=task is Task.MASKS)
    settings = TransformerSettings(source=layout)
    return model, tokenizer, TransformerClassifier(asked, tokenizer, settings, LABELS[:outputs])


def read_alone(model, encoding):
    names = {"input_ids", "attention_mask"}
    return model(**{name: part for name, part in encoding.items() if name in names}).logits[0]


def ends_in_white_space(tokenizer, rng):
    """A text of which the tokenizer's truncation keeps white space last."""
    while True:
        text = written(rng, 24)
        encoding = tokenizer(text, truncation=True, return_offsets_mapping=True)
        end = max(b for _, b in encoding["offset_mapping"])
        if text[end - 1].isspace():
            return text


@pytest.mark.parametrize(
    ("layout", "padding"),
    [
        *((name, "right") for name in ("gpt2", "llama", "gemma2", "t5", "roberta", "qwen2")),
        *((name, "left") for name in ("llama", "gemma2", "qwen2")),
    ],
)
def test_a_text_cut_at_white_space_is_answered_as_by_transformers(layout, padding):
    model, tokenizer, on_trial = classifier(layout, padding_side=padding)
    rng = random.Random(1)
    texts = [ends_in_white_space(tokenizer, rng) for _ in range(6)]
    cut = [on_trial.truncated(pieces(text, "words"), 24).text for text in texts]
    answers = on_trial.trace(on_trial.batch([*cut, ["A", " film"]], range(7))).logits
    for answer, text in zip(answers, texts, strict=False):
        alone = tokenizer(text, truncation=True, return_tensors="pt")
        torch.testing.assert_close(answer, read_alone(model, alone), **CLOSE)


def test_words_left_out_of_a_cut_text_leave_its_end_as_it_was():
    """GPT-2 reads two line breaks before a word one by one, and at the end of a text as one."""
    tokenizer = tokenizer_of("gpt2")
    breaks = tokenizer("a\n\nfilm").input_ids[1:3]
    assert tokenizer("a\n\n").input_ids[1:] != breaks
    text = "The plot is thin, but the actors carry it\n\nto the end."
    longest = len(tokenizer("The plot is thin, but the actors carry it").input_ids) + 2
    cut = truncated(tokenizer, pieces(text, "words"), longest).text
    assert cut[-1] == " it\n\n"
    assert isinstance(cut[-1], CutWord)
    every = np.ones(len(cut), dtype=bool)
    for place in range(len(cut)):
        kept = every.copy()
        kept[place] = False
        without = "".join(word.rstrip("\n") for word in np.array(cut)[kept])
        expected = [*tokenizer(without).input_ids, *breaks]
        changed = [exchanged(cut, place), shortened(cut, kept)]
        assert token_ids(tokenizer, changed) == [expected] * 2


def tagged(rng, asks_of_blank):
    """Words, white space among them, and the place of the one that is asked about."""
    words = [rng.choice(WORDS) for _ in range(6)]
    words[2:2], words[5:5] = [BLANK[0]], [rng.choice(BLANK)]
    return words, 2 if asks_of_blank else rng.choice([0, 3, 4, 7])


def answered(model, tokenizer, words, target, token=None):
    """A list of words as transformers reads it, at the first position of a word, or at the word's token."""
    encoding = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    ids, numbers = encoding.input_ids[0].tolist(), encoding.word_ids()
    places = [i for i, word in enumerate(numbers) if word == target and token in (None, ids[i])]
    return read_alone(model, encoding)[places[0]]


TAGGERS = [
    "gpt2", "gpt2 with a space first", "qwen2", "roberta with a space first", "llama", "gemma2", "t5", "bert",
]  # fmt: skip


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("layout", TAGGERS)
def test_a_list_of_words_is_tagged_as_by_transformers(layout, masked):
    marks = {} if masked else {"mask_token": None}
    model, tokenizer, on_trial = classifier(layout, Task.WORDS, 3, longest=60, **marks)
    mark = mask_of(tokenizer)
    number, rng = tokenizer.convert_tokens_to_ids(mark), random.Random(2)
    for round_ in range(2):
        words, target = tagged(rng, asks_of_blank=round_ == 0 and layout != "bert")
        text = Asked(spaced(words), target, None, True)
        expected = answered(model, tokenizer, words, target)
        answer = on_trial.trace(on_trial.batch([text], [0])).logits[0]
        torch.testing.assert_close(answer, expected, **CLOSE)
        for deletion in ("remove", "mask"):
            (without,) = reread_without_each(on_trial, [text], deletion)
            for place in range(len(words)):
                changed = [*words[:place], mark, *words[place + 1 :]]
                if place == target:
                    expected = answered(model, tokenizer, changed, target, number)
                elif deletion == "mask":
                    expected = answered(model, tokenizer, changed, target)
                else:
                    del changed[place]
                    expected = answered(model, tokenizer, changed, target - (place < target))
                torch.testing.assert_close(without[place].float(), expected, **CLOSE)


@pytest.mark.parametrize("layout", ["gpt2", "qwen2", "roberta", "t5"])
def test_a_hidden_word_of_a_string_is_read_at_the_mask_and_others_at_their_first_letter(layout):
    model, tokenizer, on_trial = classifier(layout, Task.WORDS, 3, longest=60)
    text = Asked(pieces("The  film \n was naïve,  and sad", "words"), 3)
    (without,) = reread_without_each(on_trial, [text], "mask")
    before = "".join(text.tokens[:3])
    for written_text, token, answer in (
        ("".join(text.tokens), None, on_trial.logits(on_trial.batch([text], [0]))[0]),
        (f"{before} <mask>,  and sad", tokenizer.mask_token_id, without[3].float()),
    ):
        encoding = tokenizer(written_text, return_tensors="pt")
        place = encoding.char_to_token(len(before) + 1)
        assert token in (None, encoding.input_ids[0, place])
        torch.testing.assert_close(answer, read_alone(model, encoding)[place], **CLOSE)


@pytest.mark.parametrize("layout", ["roberta", "roberta with a space first", "bert"])
def test_a_masked_word_is_read_at_the_mask(layout):
    model, tokenizer, on_trial = classifier(layout, Task.MASKS)
    settings, words = DataSettings.of(source="x", raw=True), ["film", "plot"]
    entries = [tokenizer(f" {word}", add_special_tokens=False).input_ids for word in words]
    for text in (
        "The film was <mask> .", "A film\n[MASK]\n\n", "[mask] bad", "un[MASK]able.", "the  <mask>\u00a0"
    ):  # fmt: skip
        split = asked_text(text, *words, settings, "masks")
        answer = on_trial.logits(on_trial.batch(split.texts, [0]))[0]
        encoding = tokenizer(re.sub(r"\[mask\]", "<mask>", text, flags=re.I), return_tensors="pt")
        place = encoding.input_ids[0].tolist().index(tokenizer.mask_token_id)
        expected = read_alone(model, encoding)[place][[number for (number,) in entries]]
        torch.testing.assert_close(answer, expected, **CLOSE)


def write(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


ROWS = [
    {"tokens": ["Ada", "\u00a0", "met", "", " Bob"], "tags": ["A", "B", "O", "O", "A"]},
    {"tokens": ["  ", "film"], "tags": ["B", "A"]},
]


def test_a_word_of_white_space_is_a_word_of_its_sentence(tmp_path):
    settings = DataSettings.of(
        source=str(write(tmp_path / "x.jsonl", ROWS)), raw=True, training=False, asks="words",
        max_tokens=100,
    )  # fmt: skip
    texts = load_corpus(settings, ["A", "B", "O"]).splits["test"].texts
    given = [["Ada", "\u00a0", "met", " Bob"]] * 3 + [["  ", "film"]] * 2
    tokenizer = tokenizer_of("roberta with a space first")
    expected = [tokenizer(words, is_split_into_words=True).input_ids for words in given]
    assert token_ids(tokenizer, texts) == expected
    assert [text.target for text in texts] == [0, 1, 3, 0, 1]


def test_words_without_a_token_are_left_out_and_counted_and_unspaced_words_are_noted(tmp_path):
    rows = write(tmp_path / "x.jsonl", ROWS)
    for layout in ("bert", "qwen2"):
        model = model_of(layout, "ForTokenClassification", 3)
        model.config.id2label = dict(enumerate("ABO"))
        model.save_pretrained(tmp_path / layout)
        tokenizer_of(layout).save_pretrained(tmp_path / layout)
    corpus = hm.open_model(tmp_path / "bert", rows).corpus
    assert [key.split()[-1] for key in corpus.splits["test"].keys] == ["1", "4", "2"]
    assert [n for reason, n in corpus.left_out.items() if "no token" in reason] == [2]
    with pytest.warns(Note, match="no space between them.*add_prefix_space"):
        hm.open_model(tmp_path / "qwen2", rows)
    nothing = write(tmp_path / "y.jsonl", [{"tokens": ["a", None], "tags": ["A", "O"]}])
    with refused("None", "leave the row out"):
        hm.open_model(tmp_path / "bert", nothing)


def test_a_text_that_a_mask_makes_too_long_is_cut_as_any_text():
    model, tokenizer, on_trial = classifier("roberta")
    text = pieces("The plot is thin, but the actors carry it to the film", "words")
    longest = on_trial.limit = len(tokenizer("".join(text)).input_ids)
    (without,) = reread_without_each(on_trial, [text], "mask")
    for place, word in enumerate(text):
        changed = "".join([*text[:place], word.replace(word.strip(), "<mask>"), *text[place + 1 :]])
        cut = tokenizer(changed, truncation=True, max_length=longest, return_tensors="pt")
        torch.testing.assert_close(without[place].float(), read_alone(model, cut), **CLOSE)
    asked = Asked(text, len(text) - 1)
    ids = on_trial.batch([on_trial.mask_token(asked, 1)], [0]).ids[0].tolist()
    last = tokenizer(text[-1], add_special_tokens=False).input_ids
    assert len(ids) <= longest
    assert ids[-1 - len(last) : -1] == last


def test_a_model_of_pairs_with_a_short_limit_is_verified():
    model, tokenizer = model_of("bert", "ForSequenceClassification"), tokenizer_of("bert")
    assert verify(model, tokenizer, pairs=True).refusal is None
