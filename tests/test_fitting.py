"""Texts as a model reads them: words with weights of their own, and known ends of words."""

import json
from functools import partial

import numpy as np
import pytest
from tiny_transformers import tiny_model, tiny_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import GPT2Config, GPT2ForSequenceClassification, PreTrainedTokenizerFast
from wording import refused

import heedmap as hm
from heedmap.data.corpus import Split
from heedmap.huggingface.fitting import fit, merge
from heedmap.huggingface.truncation import truncated

FEW = {"permutations": 5}
PIECES = [["(", "so", " bad", ")", ".", " Really", ".", ".", "."], ["Good", " film"]]
BEGIN = [[0, 1, 2, 3, 5, 6], [0, 1]]


def split_of(tokens, rationale=None):
    keys = [f"t{i}" for i in range(len(tokens))]
    return Split(keys, tokens, np.arange(len(tokens)) % 2, rationale)


def test_words_that_share_a_sub_word_become_one_and_are_counted():
    gold = [np.array([0, 0, 1, 0, 1, 0, 0, 0, 0], dtype=bool), np.array([1, 0], dtype=bool)]
    merged, count = merge(split_of(PIECES, gold), lambda texts: BEGIN)
    assert merged.tokens == [["(", "so", " bad", ").", " Really", "..."], ["Good", " film"]]
    assert [mask.tolist() for mask in merged.rationale] == [[0, 0, 1, 1, 0, 0], [1, 0]]
    assert merged.keys == ["t0", "t1"]
    ((reason, number),) = count.items()
    assert "in 1 text (" in reason
    assert number == 3


def test_a_split_without_such_words_is_left_alone():
    split = split_of(PIECES)
    same, count = merge(split, lambda texts: [list(range(len(text))) for text in texts])
    assert same is split
    assert count == {}


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """A tiny GPT-2 that has a sub-word for ").", for ".." and for "..."."""
    folder = tmp_path_factory.mktemp("byte-level")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(".", "."), ("..", "."), (")", ".")]
    known = ["<|endoftext|>", *letters, *(a + b for a, b in merges)]
    made = Tokenizer(models.BPE({piece: i for i, piece in enumerate(known)}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    end = dict.fromkeys(("eos_token", "unk_token", "pad_token"), "<|endoftext|>")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, **end, model_max_length=64)
    config = GPT2Config(
        vocab_size=len(known), n_embd=16, n_head=4, n_layer=2, pad_token_id=0, eos_token_id=0,
        bos_token_id=0,
    )  # fmt: skip
    GPT2ForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def written(path, texts):
    rows = [{"text": text, "label": i % 2, "id": f"t{i}"} for i, text in enumerate(texts)]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_every_word_of_a_byte_level_model_has_a_weight_of_its_own(byte_level, tmp_path):
    texts = ["(so bad).", "Hm... no.", "Good film", "Oh. Fine (I guess)..."]
    run = hm.open_model(byte_level, written(tmp_path / "x.jsonl", texts), out=tmp_path / "run")
    tokens = run.corpus.splits["test"].tokens
    assert ["".join(words) for words in tokens] == texts
    assert [words[-1] for words in tokens] == [").", ".", " film", "..."]
    audit = hm.audit(run, **FEW)
    instances = audit.tables["instances"]
    assert all(min(heat) > 0 for heat in instances["attention"].to_pylist())
    lengths = [len(words) for words in tokens]
    assert instances["n_tokens"].to_pylist() == lengths
    for name in ("gradient", "leave_one_out", "integrated_gradients"):
        assert [len(row) for row in audit.tables[name]["importance"].to_pylist()] == lengths
    (reason,) = (reason for reason in audit.about["left_out"] if "sub-word" in reason)
    assert audit.about["left_out"][reason] == 5
    assert "in 3 texts" in reason
    shown = reason.removesuffix(" (kept)")
    assert f"<dt>kept, and counted</dt><dd>{shown}: 5</dd>" in (
        tmp_path / "run" / "report.html"
    ).read_text(encoding="utf-8")


def test_a_picture_shows_such_words_as_one_and_says_so(byte_level):
    from heedmap.huggingface.opening import open_classifier
    from heedmap.report.pictures import draw
    from heedmap.settings.models import TransformerSettings

    model, _ = open_classifier(TransformerSettings(source=str(byte_level)))
    picture = draw(model, "So... bad).")
    words = [token.text for token in picture.layers[0].rows[0][1][0].words]
    assert words == ["So", "...", "bad", ")."]
    assert "words that share a sub-word are shown as one: 3 fewer" in picture.notes


def test_a_text_with_an_end_of_its_own_is_left_out_where_the_model_reads_its_end(tmp_path):
    tiny_model("bart").save_pretrained(tmp_path / "bart")
    tiny_tokenizer().save_pretrained(tmp_path / "bart")
    texts = written(tmp_path / "x.jsonl", ["a film .", "bad [SEP] plot", "great", "the plot"])
    run = hm.open_model(tmp_path / "bart", texts)
    assert run.corpus.splits["test"].keys == ["t0", "t2", "t3"]
    ((reason, number),) = run.corpus.left_out.items()
    assert "end-of-text" in reason
    assert number == 1
    run.model.logits(run.model.batch(run.corpus.splits["test"].tokens, range(3)))
    none = written(tmp_path / "y.jsonl", ["[SEP]", "bad [SEP] plot"])
    with refused("end-of-text"):
        hm.open_model(tmp_path / "bart", none)


def characters(texts):
    """As a tokenizer of characters counts positions: one each, and two marks."""
    return np.array([2 + sum(map(len, words)) for words in texts])


LONG = [["ab", "c", "d"], ["abc", "de", "f", "ghij", "k"], ["a"], ["abcd"], ["ab", "cd", "ef"]]


@pytest.mark.parametrize("longest", [6, 7, 8, 9, 11, 13])
def test_windows_are_the_longest_stretches_that_fit_one_after_another(longest):
    gold = [np.arange(len(words)) % 2 == 0 for words in LONG]
    found, count = fit(split_of(LONG, gold), characters, longest, None)
    tokens, keys, rows, marks = [], [], [], []
    for row, words in enumerate(LONG):
        spans = [[]]
        for at, word in enumerate(words):
            if characters([[*(words[i] for i in spans[-1]), word]])[0] > longest:
                spans.append([])
            spans[-1].append(at)
        for number, span in enumerate(spans):
            tokens.append([words[i] for i in span])
            keys.append(f"t{row}#{number}" if len(spans) > 1 else f"t{row}")
            rows.append(row)
            marks.append(gold[row][span].tolist())
    assert [list(words) for words in found.tokens] == tokens
    assert found.keys == keys
    assert found.labels.tolist() == [row % 2 for row in rows]
    assert [mask.tolist() for mask in found.rationale] == marks
    longer = [row for row in range(5) if rows.count(row) > 1]
    if longer:
        assert found.text_of.tolist() == rows
        ((reason, number),) = count.items()
        assert (
            f"{longest} positions, read as {len([r for r in rows if r in longer])} windows (kept)"
            in reason
        )
        assert number == len(longer)
    else:
        assert count == {}


def letters(side="right"):
    """A tokenizer of characters, two marks around each text."""
    vocabulary = {"<": 0, ">": 1, **{letter: i + 2 for i, letter in enumerate("abcdefghijk")}}
    made = Tokenizer(models.WordLevel(vocabulary))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    made.post_processor = processors.BertProcessing((">", 1), ("<", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=made, cls_token="<", sep_token=">", truncation_side=side
    )


@pytest.mark.parametrize(
    ("side", "kept"),
    [("right", [["abc", "de"], ["ab", "cd", "e"]]), ("left", [["ghij", "k"], ["b", "cd", "ef"]])],
)
def test_a_text_is_cut_on_the_tokenizers_side_even_within_a_word(side, kept):
    cut = partial(truncated, letters(side), longest=7)
    gold = [np.arange(len(words)) % 2 == 0 for words in LONG]
    found, count = fit(split_of(LONG, gold), characters, 7, cut)
    assert [list(words) for words in found.tokens] == [LONG[0], kept[0], LONG[2], LONG[3], kept[1]]
    assert [len(mask) for mask in found.rationale] == list(map(len, found.tokens))
    assert found.keys == [f"t{i}" for i in range(5)]
    assert found.text_of is None
    assert count == {"longer than the model's 7 positions, cut (kept)": 2}


@pytest.mark.parametrize("how", [partial(truncated, None, longest=13), None])
def test_texts_that_all_fit_are_left_alone_and_a_word_that_does_not_is_named(how):
    split = split_of(LONG)
    same, count = fit(split, characters, 13, how)
    assert same is split
    assert count == {}
    with refused("5 positions", "'abcd'"):
        fit(split_of([["a"], ["abcd"]]), characters, 5, None)
