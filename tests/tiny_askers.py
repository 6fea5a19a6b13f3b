"""Tiny random models of several architectures that answer at each position, and texts that ask about a word."""

import torch
import transformers as hf
from tiny_transformers import CONFIGS, tiny_tokenizer

from heedmap.data.asked_words import FIRST_AND_SECOND
from heedmap.data.texts import Asked
from heedmap.huggingface.targets import answer_at_targets
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import TransformerSettings

LABELS = ["O", "PER", "LOC"]
MORE = {
    "roberta": (hf.RobertaConfig, {**CONFIGS["bert"][1], "max_position_embeddings": 64}),
    "electra": (hf.ElectraConfig, {**CONFIGS["bert"][1], "embedding_size": 8}),
    "deberta-v2": (
        hf.DebertaV2Config,
        {**CONFIGS["bert"][1], "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    ),
}
ARCHITECTURES = ("bert", "distilbert", "albert", "roberta", "electra", "deberta-v2")
TAGGED = [
    Asked(["A", " great", " film", "."], 2),
    Asked(["the", " plot", " is", " unwatchable", ",", " bad", " films"], 3),
    Asked(["bad"], 0),
    Asked(["a", " film"], 0),
]
MASKED = [
    Asked(["A", " great", " [MASK]", "."], 2, ("film", "plot")),
    Asked(["the", " [MASK]", " is", " unwatchable", ",", " bad", " films"], 1, ("film", "plot")),
    Asked(["[MASK]"], 0, ("bad", "great")),
    Asked(["[MASK]", " film"], 0, ("a", "the")),
]


def plain(architecture, *, of_masks, seed=0):
    """An untrained model of transformers itself, whose attention is uneven."""
    config_class, options = {**CONFIGS, **MORE}[architecture]
    config = config_class(**options, pad_token_id=0, id2label=dict(enumerate(LABELS)))
    kind = hf.AutoModelForMaskedLM if of_masks else hf.AutoModelForTokenClassification
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind.from_config(config)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() > 1 and "norm" not in name.lower():
                    parameter.normal_(0, 0.6)
    return model.eval().requires_grad_(False)


def on_trial(architecture, *, of_masks, **settings):
    """The same on trial."""
    model = plain(architecture, of_masks=of_masks)
    answer_at_targets(model, of_masks=of_masks)
    names = [*FIRST_AND_SECOND] if of_masks else LABELS
    wanted = TransformerSettings(source=architecture, **settings)
    return TransformerClassifier(model, tiny_tokenizer(), wanted, names)
