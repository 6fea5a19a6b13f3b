"""What a change of the prediction is measured in, and how findings say so.

Of classes it is the total variation distance (TVD), from 0 to 1. A model that gives a number has no such limit:
its changes stand in the tables in the output's own unit, and in the findings in standard deviations of the
outputs of all audited texts, so that they can be compared with those of other models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from heedmap.experiments.output_spread import stored_spread
from heedmap.experiments.rounding import number
from heedmap.experiments.text_tables import outputs_of_texts


@dataclass(frozen=True)
class Scale:
    """The measure of changes of the prediction.

    Attributes:
        kind: of the findings that are changes.
        change: what such a finding is of, in words.
        meaning: how to read it.
        size: of one such unit in the tables; NaN where no change can be measured in it.
        unit: what the number counts that the model gives; None of classes.
        short: what a change is measured in, in a few words.
        evidence: the same of what gradients add up to.
        same: what is as good as the model's own prediction, with the tolerance in place of {}.
        guess: over what an answer has its lead (`methods/followed_answers`).
        below: where a reading has less of the answer than that.
        lead: what the lead is, in words.
        moved: what weights move.
    """

    kind: str = "tvd"
    change: str = "change of the prediction (TVD)"
    meaning: str = "0 = no change, 1 = the opposite answer"
    size: float = 1.0
    unit: str | None = None
    short: str = "TVD"
    evidence: str = "log-odds"
    same: str = "{} of its prediction"
    guess: str = "guessing"
    below: str = "an answer falls below a guess"
    lead: str = "the answer's lead, which is its probability above that of a guess"
    moved: str = "the probabilities by {}"

    def within(self, epsilon: float) -> str:
        """Say what counts as the same prediction: a change of at most ε, on this scale.

        >>> CLASSES.within(0.01)
        '0.01 of its prediction'
        """
        amount = "" if self.unit is None else f" (which is {self.amount(epsilon)})"
        return self.same.format(f"{epsilon:g}") + amount

    def amount(self, change: float) -> str:
        """Put a change in the output's unit into words.

        >>> Scale("deviations", "change", "0 = no change", 2.0, "stars").amount(0.25)
        '0.50 stars'
        """
        return f"{number(change * self.size)} {self.unit}"


CLASSES = Scale()


def answer_names(classes: Sequence[str]) -> list[str]:
    """Return the names of the answers that an audit judges apart: the classes, or numbers below and above."""
    return [*classes] if len(classes) > 1 else ["below the mean", "above the mean"]


def scale_of(instances: pa.Table, classes: list[str]) -> Scale:
    """Return the scale of an audit, from the table of its instances; `classes` are the names of its outputs.

    A table without predictions has no deviation of them.
    """
    if len(classes) > 1 or "probabilities" not in instances.column_names:
        return CLASSES
    (unit,) = classes
    spread = stored_spread(instances, outputs_of_texts(instances))
    deviation = spread.deviation
    whose = "all audited texts"
    if spread.texts > instances.num_rows:
        whose = f"{spread.texts} texts, those that were drawn among them"
    return Scale(
        "deviations",
        f"change of the output, in standard deviations of the outputs of {whose},",
        f"0 = no change, 1 = one standard deviation, which is {number(deviation)} {unit}",
        deviation,
        unit,
        "standard deviations of the outputs",
        "standard deviations of the outputs",
        "{} standard deviations of its output",
        "the mean of all outputs",
        "a reading is on the other side of that mean",
        "the number's lead, which is its distance from the mean of all outputs",
        "the output by {} standard deviations",
    )
