"""Tokenizers laid out as those of published models, learned from a few sentences, and tiny random models."""

import functools

import torch
import transformers as hf
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

SPECIAL = {
    "bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>",
    "cls_token": "<s>", "sep_token": "</s>",
}  # fmt: skip
KNOWN = [*dict.fromkeys(SPECIAL.values())]
SENTENCES = [
    "A quiet film about a family that learns to listen.\n\nNot bad.",
    "The plot is thin, but the actors carry it to the end.\n\n\n  Good story",
    "it was really very nice and terribly sad in 2019 for 7.5 dollars",
] * 20
QWEN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _learned(model, trainer, **options):
    made = Tokenizer(model)
    for name, part in options.items():
        if part is not None:
            setattr(made, name, part)
    made.train_from_iterator(SENTENCES, trainer)
    return made


def _bytes(post, prefix=False, expression=None):
    """Sub-words of bytes, as of GPT-2; of Qwen2, with its own expression."""
    into = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=expression is None)
    if expression is not None:
        split = pre_tokenizers.Split(Regex(expression), "isolated")
        into = pre_tokenizers.Sequence([split, into])
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=KNOWN, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    return _learned(
        models.BPE(), trainer, pre_tokenizer=into, decoder=decoders.ByteLevel(), post_processor=post
    )


def _marked(model, trainer, single, pre_tokenizer, normalizer=None):
    """Sub-words of letters, after a ▁ for each space."""
    ends = [(token, KNOWN.index(token)) for token in ("<s>", "</s>")]
    pair = f"{single} {single.replace('$A', '$B')}"
    post = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ends)
    return _learned(
        model, trainer, pre_tokenizer=pre_tokenizer, normalizer=normalizer, post_processor=post
    )


def _pieces(size):
    spelled = [f"<0x{number:02X}>" for number in range(256)]
    return models.BPE(byte_fallback=True, unk_token="<unk>"), trainers.BpeTrainer(
        vocab_size=size, special_tokens=[*KNOWN, *spelled], show_progress=False
    )


def _t5():
    return _marked(
        models.Unigram(),
        trainers.UnigramTrainer(
            vocab_size=150, special_tokens=KNOWN, unk_token="<unk>", show_progress=False
        ),
        "$A </s>",
        pre_tokenizers.Metaspace(),
        normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
    )


def _bert():
    return _learned(
        models.WordPiece(unk_token="<unk>"),
        trainers.WordPieceTrainer(vocab_size=150, special_tokens=KNOWN, show_progress=False),
        normalizer=normalizers.BertNormalizer(),
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        post_processor=processors.BertProcessing(("</s>", 2), ("<s>", 0)),
    )


def _roberta(prefix, trimmed=True):
    post = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trimmed, prefix)
    return _bytes(post, prefix)


_LAYOUTS = {
    "gpt2": lambda: _bytes(processors.ByteLevel(trim_offsets=False)),
    "gpt2 with a space first": lambda: _bytes(processors.ByteLevel(trim_offsets=True), prefix=True),
    "qwen2": lambda: _bytes(processors.ByteLevel(trim_offsets=False), expression=QWEN),
    "roberta": lambda: _roberta(prefix=False, trimmed=False),
    "roberta with a space first": lambda: _roberta(prefix=True),
    "llama": lambda: _marked(
        *_pieces(420), "<s> $A", pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    ),
    "gemma2": lambda: _marked(
        *_pieces(500), "<s> $A", pre_tokenizers.Split(" ", "merged_with_previous"),
        normalizers.Replace(" ", "▁"),
    ),
    "t5": _t5,
    "bert": _bert,
}  # fmt: skip
LAYOUTS = [*_LAYOUTS]


@functools.cache
def _written(layout):
    return _LAYOUTS[layout]().to_str()


def tokenizer_of(layout, longest=24, **options):
    """A tokenizer; `options` are those of transformers, such as `truncation_side`."""
    made = Tokenizer.from_str(_written(layout))
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=longest, **{**SPECIAL, **options}
    )


_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
_GROUPED = {"num_key_value_heads": 2, "max_position_embeddings": 64}
_CONFIGS = {
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "qwen2": ("Qwen2", _SIZES | _GROUPED),
    "roberta": ("Roberta", _SIZES | {"max_position_embeddings": 66, "type_vocab_size": 1}),
    "llama": ("Llama", _SIZES | _GROUPED),
    "gemma2": ("Gemma2", _SIZES | _GROUPED | {"head_dim": 8, "sliding_window": 64}),
    "t5": (
        "T5",
        {
            "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
            "decoder_start_token_id": 1,
        },
    ),
    "bert": ("Bert", _SIZES | {"max_position_embeddings": 64}),
}  # fmt: skip


def model_of(layout, task, outputs=2):
    """A random model of transformers itself, such as `GPT2ForTokenClassification`, with uneven attention."""
    name, sizes = _CONFIGS[layout.split()[0]]
    names = {i: f"class{i}" for i in range(outputs)}
    config = getattr(hf, f"{name}Config")(
        vocab_size=len(tokenizer_of(layout)), id2label=names, bos_token_id=0, pad_token_id=1,
        eos_token_id=2, **sizes,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(hf, f"{name}{task}")(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.normal_(0, 0.25)
    return model.eval().requires_grad_(False)
