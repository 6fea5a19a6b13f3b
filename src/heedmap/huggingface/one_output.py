"""Read a cross-encoder with one output as a classifier of two classes: relevant or not.

Its output z is trained as the logit of a yes (binary cross entropy, the default of sentence-transformers). So
the two classes have the logits (0, z), and the probability of yes is 1 / (1 + exp(−z)).
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

MARKS = ("sentence_transformers", "sbert_ce_default_activation_function")
"""Entries that sentence-transformers writes into the configuration of a cross-encoder."""
STANDARD = "LABEL_0"


def is_cross_encoder(config: PreTrainedConfig) -> bool:
    """Return whether sentence-transformers saved the model as a cross-encoder."""
    return any(getattr(config, mark, None) is not None for mark in MARKS)


def is_relevance(config: PreTrainedConfig) -> bool:
    """Return whether a model has one output that is the logit of a yes: a cross-encoder, and no regression."""
    return (
        config.num_labels == 1 and is_cross_encoder(config) and config.problem_type != "regression"
    )


def names_of_two(config: PreTrainedConfig) -> list[str]:
    """Return the names of no and yes: the output's own, or "relevant" where it has none."""
    (name,) = (config.id2label or {0: STANDARD}).values()
    yes = "relevant" if name == STANDARD else str(name)
    return [f"not {yes}", yes]


def two_logits(output: Float[Tensor, "B 1"]) -> Float[Tensor, "B 2"]:
    """Return the logits (0, z) of no and yes."""
    return torch.cat([torch.zeros_like(output), output], dim=-1)


def answer_with_two(model: PreTrainedModel) -> None:
    """Make every pass of a model with one output give the logits of no and yes."""
    model.register_forward_hook(_widen)


def _widen(_: Any, __: Any, output: Any) -> Any:
    output.logits = two_logits(output.logits)
    return output
