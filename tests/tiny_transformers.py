"""Tiny random classifiers of several architectures, all with one small tokenizer."""

import copy
import functools

import torch
import transformers as hf
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

from heedmap.data.load import load_corpus
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.data import DataSettings
from heedmap.settings.models import TransformerSettings

WORDS = [
    "a",
    "film",
    "great",
    "bad",
    "plot",
    "un",
    "##watch",
    "##able",
    "the",
    "is",
    "##s",
    ".",
    ",",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZE = len(SPECIAL) + len(WORDS)
SMALL = {"vocab_size": SIZE, "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 3}
TEXTS = [
    ["A", " great", " film", "."],
    ["the", " plot", " is", " unwatchable", ",", " bad", " films"],
    ["bad"],
]

CONFIGS = {
    "bert": (hf.BertConfig, {**SMALL, "intermediate_size": 24}),
    "distilbert": (
        hf.DistilBertConfig,
        {"vocab_size": SIZE, "dim": 16, "n_heads": 4, "n_layers": 3, "hidden_dim": 24},
    ),
    "albert": (hf.AlbertConfig, {**SMALL, "intermediate_size": 24, "embedding_size": 8}),
    "gpt2": (hf.GPT2Config, {"vocab_size": SIZE, "n_embd": 16, "n_head": 4, "n_layer": 3}),
    "llama": (
        hf.LlamaConfig,
        {**SMALL, "intermediate_size": 24, "num_key_value_heads": 2, "max_position_embeddings": 64},
    ),
    "bart": (
        hf.BartConfig,
        {
            "vocab_size": SIZE, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24, "max_position_embeddings": 64, "eos_token_id": 3, "bos_token_id": 2,
            "decoder_start_token_id": 3, "forced_eos_token_id": None,
        },
    ),
    "bloom": (hf.BloomConfig, {"vocab_size": SIZE, "hidden_size": 16, "n_head": 4, "n_layer": 3}),
    "modernbert": (
        hf.ModernBertConfig,
        {
            **SMALL, "intermediate_size": 24, "max_position_embeddings": 64, "cls_token_id": 2,
            "sep_token_id": 3, "local_attention": 8, "global_attn_every_n_layers": 2,
            "classifier_pooling": "mean",
        },
    ),
    "mpnet": (hf.MPNetConfig, {**SMALL, "intermediate_size": 24}),
    "xlnet": (
        hf.XLNetConfig, {"vocab_size": SIZE, "d_model": 16, "n_head": 4, "n_layer": 3, "d_inner": 24},
    ),
}  # fmt: skip


def tiny_tokenizer(architecture: str = "bert") -> PreTrainedTokenizerFast:
    """[CLS] words [SEP], with sub-words, padded on the side that the architecture reads."""
    vocabulary = {word: i for i, word in enumerate(SPECIAL + WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", eos_token="[SEP]", model_max_length=32,
        padding_side="left" if architecture == "xlnet" else "right",
    )  # fmt: skip


def tiny_model(architecture="bert", classes=2, seed=0, spread=0.6):
    """An untrained model with weights large enough that its attention is uneven: a copy of one made once."""
    return copy.deepcopy(_made_once(architecture, classes, seed, spread))


@functools.cache
def _made_once(architecture, classes, seed, spread):
    config_class, options = CONFIGS[architecture]
    # Names of our own: BART forgets two standard ones when saved, and comes back with its usual three.
    names = {i: f"class{i}" for i in range(classes)}
    config = config_class(**options, pad_token_id=0, id2label=names)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForSequenceClassification.from_config(config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() > 1 and "norm" not in name.lower():
                    parameter.normal_(0, spread)
    return model.eval().requires_grad_(False)


def tiny_classifier(architecture="bert", classes=2, seed=0, **settings):
    """The same on trial."""
    names = [f"c{i}" for i in range(classes)]
    wanted = TransformerSettings(source=architecture, **settings)
    model = tiny_model(architecture, classes, seed)
    return TransformerClassifier(model, tiny_tokenizer(architecture), wanted, names)


def reviews_classifier(folder):
    """An untrained BERT saved in a folder, whose WordPiece tokenizer has learned the embedded reviews."""
    corpus = load_corpus(DataSettings(source="reviews", raw=True))
    texts = ["".join(tokens) for tokens in corpus.splits["train"].tokens]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    learner = trainers.WordPieceTrainer(vocab_size=150, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(texts, learner)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32}
    config = hf.BertConfig(
        vocab_size=tokenizer.get_vocab_size(), intermediate_size=64, max_position_embeddings=64,
        id2label={0: "neg", 1: "pos"}, initializer_range=0.3, **sizes,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hf.BertForSequenceClassification(config).save_pretrained(folder)
    return folder
