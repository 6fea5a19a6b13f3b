"""How attention is audited: how many texts, for how long, and what each question computes with."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_serializer
from pydantic_core import PydanticCustomError

from heedmap.errors import InputError
from heedmap.settings.base import Positive, Seed, Settings, option

# How many texts are drawn. The number of a text is the same however many there are.
BUDGET = ("minutes", "drawn", "unasked")
Renormalise = Literal["scale", "again"]


def _names(value: object) -> object:
    """Take a single name for a list of one, and no names for none."""
    if isinstance(value, str | Path):
        return (str(value),)
    return tuple(map(str, value)) or None if isinstance(value, list | tuple) else value


Names = Annotated[tuple[str, ...] | None, BeforeValidator(_names)]


def _minutes(value: object) -> object:
    """Take a number of minutes as it is written on a command line."""
    if value is None or value == "all":
        return value
    try:
        minutes = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        minutes = 0.0
    if isinstance(value, bool) or not 0 < minutes < float("inf"):
        raise PydanticCustomError("minutes", "expected minutes above 0, such as 10 or 0.5, or all")
    return minutes


Minutes = Annotated[float | Literal["all"] | None, BeforeValidator(_minutes)]


class AuditSettings(Settings):
    """How attention is audited.

    `instances` bounds the number of test texts: a larger test split is sampled, and the report says so. The
    other `_instances` bound the samples of slow experiments. `gradient_path`: the gradient flows through the
    attention ("open") or the attention is held fixed ("closed", as in the paper). `leave_one_out`: the word
    is removed or masked. `gradient_of`: the log-odds of the predicted class, or its probability, whose
    gradient vanishes where it rounds to 1. `search_…`: the search for adversarial attention where there is no
    exact method; `descent_steps`: steps of the paper's search, 0 for models that are too slow for it.
    `random_item`: see `heedmap.experiments.questions.erasure`; `renormalise`:
    `heedmap.experiments.methods.erasure_predictions`. `minutes`: see `heedmap.experiments.budget`; `drawn` is
    how many texts were drawn in this time, and `unasked` are the questions that it was too short for (None:
    not known yet).
    """

    seed: Seed = option("Seed of the split, the weights and the experiments.", 0)
    instances: Positive = option("Audit at most this many test texts.", 2000)
    minutes: Minutes = option(
        "Draw texts one after another until the bottom line is certain or these minutes are over, then ask the "
        "other questions that there is time for; all to ask all texts everything. The same command reads on "
        "from there; its minutes count from its own start.",
        None,
        shown="10 for a transformer whose audit would take one core longer, else all",
    )
    drawn: Positive | None = option(
        "Draw this many texts as --minutes does, to repeat an audit that stopped after as many.",
        None,
    )
    unasked: tuple[str, ...] | None = None
    permutations: Annotated[int, Field(ge=1, le=10_000)] = option(
        "Random shuffles of the weights per text.", 100
    )
    epsilon: Annotated[float, Field(gt=0, lt=1)] = option(
        "Total variation distance up to which two predictions count as the same, of numbers in standard "
        "deviations of the outputs.",
        0.01,
        shown=".01; pairs .05",
    )
    curve: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = (
        0.0,
        0.001,
        0.005,
        0.01,
        0.02,
        0.05,
        0.1,
    )
    integrated_gradients_steps: Positive = 16
    integrated_gradients_instances: Positive = option(
        "Sample this many texts for integrated gradients, which are slow.",
        60,
        also="integrated-gradients",
    )
    gradient_path: Literal["closed", "open"] = option(
        "Let the gradient flow through the attention (open), or hold the attention fixed (closed).",
        "closed",
        shown="closed; transformers open",
    )
    gradient_of: Literal["log-odds", "probability"] = option(
        "Quantity that is differentiated: the log-odds or the probability of the predicted class.",
        "log-odds",
    )
    leave_one_out: Literal["remove", "mask"] = option(
        "Remove the word, or replace it by the mask token.", "remove"
    )
    search_instances: Positive = 300
    search_restarts: Positive = 4
    search_steps: Positive = 30
    descent_steps: Annotated[int, Field(ge=0)] = 500
    scan_instances: Positive = 300
    random_item: Literal["paper", "code"] = option(
        "Word erased for comparison: any other one (paper), or any but the first (code).", "paper"
    )
    renormalise: Renormalise = option(
        "Scale the weights that an erasure leaves, or normalise their scores again.", "scale"
    )
    other_seed: Names = option(
        "Run of the same training with another seed, in which the answer is checked too; one or several.",
        None,
        several=True,
    )

    @property
    def is_drawn(self) -> bool:
        """Return whether texts are drawn one after another."""
        return self.drawn is not None or self.minutes not in (None, "all")

    def refuse_drawn(self, option: str) -> None:
        """Raise InputError if texts are drawn one after another, which this option does not go with."""
        if self.is_drawn:
            raise InputError(
                f"{option}: expected an audit of all texts, got one with a budget, which draws one text after "
                f"another; leave out {option}, or --minutes and --drawn (of a transformer give --minutes all)"
            )

    def is_same_but_for_budget(self, other: "AuditSettings") -> bool:
        """Return whether two audits ask the same of each text."""
        without = dict.fromkeys(BUDGET)
        return self.model_copy(update=without) == other.model_copy(update=without)

    @field_serializer("other_seed")
    def _keep_one(self, names: tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        """Write a single run as its name, as in settings of versions that took only one."""
        return names[0] if names is not None and len(names) == 1 else names
