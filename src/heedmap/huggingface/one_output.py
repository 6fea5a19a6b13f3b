"""Read one output of a model as a classifier of two classes: no and yes.

A cross-encoder with one output z is trained with it as the logit of a yes (binary cross entropy, the default of
sentence-transformers), and so is each output of a model that gives several labels at once. The two classes
have the logits (0, z), and the probability of yes is 1 / (1 + exp(−z)). With a threshold t other than .5 they
are (ln(t / (1 − t)), z), so that yes is predicted from the probability t on.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from heedmap.errors import InputError
from heedmap.terminal.output import some_of

MARKS = ("sentence_transformers", "sbert_ce_default_activation_function")
"""Entries that sentence-transformers writes into the configuration of a cross-encoder."""
STANDARD = "LABEL_0"
UNITS = "units of the output"
HALF = 0.5  # the threshold where none is given


class OneOutput(NamedTuple):
    """The output that is read as no and yes: its number, the threshold's logit, and the name of yes."""

    number: int
    floor: float
    name: str

    @property
    def classes(self) -> list[str]:
        """Return the names of no and yes."""
        return [f"not {self.name}", self.name]

    def two_logits(self, outputs: Float[Tensor, "B O"]) -> Float[Tensor, "B 2"]:
        """Return the logits of no and yes."""
        yes = outputs[..., [self.number]]
        return torch.cat([torch.full_like(yes, self.floor), yes], dim=-1)

    def widened(self, _: Any, __: Any, output: Any) -> Any:
        """Return a model's output with these logits in place of its own: a hook of a forward pass."""
        output.logits = self.two_logits(output.logits)
        return output


def is_cross_encoder(config: PreTrainedConfig) -> bool:
    """Return whether sentence-transformers saved the model as a cross-encoder."""
    return any(getattr(config, mark, None) is not None for mark in MARKS)


def is_relevance(config: PreTrainedConfig) -> bool:
    """Return whether a model has one output that is the logit of a yes: a cross-encoder, and no regression."""
    return (
        config.num_labels == 1 and is_cross_encoder(config) and config.problem_type != "regression"
    )


def gives_number(config: PreTrainedConfig) -> bool:
    """Return whether a model has one output that is a number, and no logit of a yes: a regression.

    transformers takes a model with one output for one, unless its configuration says otherwise.
    """
    is_regression = config.problem_type in (None, "regression")
    return config.num_labels == 1 and is_regression and not is_relevance(config)


def unit_of(config: PreTrainedConfig, unit: str | None) -> str:
    """Return what such a number counts: the given unit, or the output's name, if it was given one.

    Raises:
        InputError: a unit of a model of classes, or one that is no word of one line.
    """
    if not gives_number(config):
        raise InputError(
            f"--unit {unit}: expected a model that gives a number (a regression), got one that gives classes; "
            "leave it out"
        )
    (name,) = (config.id2label or {0: STANDARD}).values()
    said = unit if unit is not None else "" if name == STANDARD else str(name)
    if unit is not None and (not unit.strip() or len(unit.splitlines()) != 1):
        raise InputError(f"--unit {unit!r:.40}: expected a name of one line, such as stars")
    return said.strip() or UNITS


def one_output(
    config: PreTrainedConfig, label: str | None, threshold: float, *, several: bool
) -> OneOutput | None:
    """Return the output that is read as no and yes; None of a model whose outputs are classes.

    Args:
        config: the model's.
        label: the name of the output; None where there is one alone.
        threshold: the probability from which on it is predicted.
        several: whether the model gives several labels at once.

    Raises:
        InputError: no such label, or none named of several, or one or a threshold of a model of one class.
    """
    if not several:
        if label is not None:
            raise InputError(
                f"--output {label}: expected a model that gives several labels at once, got one that gives "
                "one class; leave it out"
            )
        if threshold != HALF:
            raise InputError(
                f"--threshold {threshold:g}: expected a model that gives several labels at once, got one that "
                "gives one class; leave it out"
            )
        if not is_relevance(config):
            return None
        (name,) = (config.id2label or {0: STANDARD}).values()
        return OneOutput(0, 0.0, "relevant" if name == STANDARD else str(name))
    names = [str(name) for _, name in sorted((config.id2label or {}).items())]
    if label is None or label not in names:
        got = "none" if label is None else f"{label!r:.60}"
        raise InputError(
            f"expected as --output one of the model's labels, of which it gives several at once "
            f"({some_of(names)}), got {got}; name one, or audit each (`heedmap audit` without --output, "
            "heedmap.audit_labels)"
        )
    return OneOutput(names.index(label), math.log(threshold / (1 - threshold)), label)


def answer_with_two(model: PreTrainedModel, output: OneOutput) -> None:
    """Make every pass of a model give the logits of no and yes, of one of its outputs."""
    model.register_forward_hook(output.widened)
