"""An audit's tables, and how a finding is made from one column of them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.errors import NamedOnce
from heedmap.experiments import intervals
from heedmap.experiments.drawing import LOOKS
from heedmap.experiments.findings import BOUNDS, ClassNumber, Finding, Relative
from heedmap.experiments.levels import grade
from heedmap.experiments.rates import Rates
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.scales import scale_of
from heedmap.files.tables import release_mapped
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import PLAIN, AnyModelSettings, ArraysSettings, TransformerSettings

ROUNDED = 3  # digits of a text's share of the attainable, by which it counts as equal to another's
LEAST_ROOM = 0.02  # between chance and ceiling
Statistic = Literal["mean", "median", "ratio"]
STATISTICS: dict[Callable[..., Any], Statistic] = {np.mean: "mean", np.median: "median"}


@dataclass(frozen=True)
class TextNumbers:
    """The numbers per text that a finding is made of, NaN for texts that are left out.

    `bounds`: what a text's number cannot leave. Of a ratio the finding is Σ values / Σ denominators.
    """

    values: NDArray[np.float64]
    statistic: Statistic = "mean"
    bounds: tuple[float, float] = (0.0, 1.0)
    denominators: NDArray[np.float64] | None = None


class Results:
    """Tables with one row per text, and the settings they were made with.

    `short` marks texts of one token; `clusters` numbers the distinct texts; `derived`: the heat map is
    computed from the layer's weights, not equal to them; `can_read`: the model reads changed input again.
    `scale` is that of changes of the prediction.
    `tail` is that of the intervals. `numbers` are those that findings are made of, by the finding's key, kept
    as these are made.
    """

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        settings: AuditSettings,
        classes: list[str],
        model: AnyModelSettings | None = None,
        rates: Rates | None = None,
    ) -> None:
        self.tables, self.settings, self.classes, self.model = tables, settings, classes, model
        self.rates = rates
        # The number of drawn texts depends on what was seen of them at each look (Bonferroni).
        self.tail = intervals.TAIL / (LOOKS if settings.is_drawn else 1)
        self.numbers: NamedOnce[TextNumbers] = NamedOnce("keys of findings")
        self.predicted = self.column("instances", "predicted").astype(int)
        self.short = self.column("instances", "n_tokens") < 2
        self.clusters = text_numbers(self.tables["instances"])
        self.scale = scale_of(self.tables["instances"], classes)
        self.view = model.view if isinstance(model, TransformerSettings) else PLAIN[0]
        self.derived = self.view not in PLAIN
        self.can_read = not isinstance(model, ArraysSettings) or model.reading

    def column(self, table: str, name: str) -> NDArray[np.float64]:
        """Return a column of numbers, null as NaN."""
        values = np.array(self.tables[table][name].to_numpy(), dtype=np.float64)
        release_mapped()
        return values

    def optional(self, table: str, name: str) -> NDArray[np.float64] | None:
        """Return a column of numbers; None if there is no such table or column."""
        if table not in self.tables or name not in self.tables[table].column_names:
            return None
        return self.column(table, name)

    def changes(self, table: str, name: str) -> NDArray[np.float64]:
        """Return a column of changes of the prediction, on the scale of the findings."""
        return self.column(table, name) / self.scale.size

    def optional_changes(self, table: str, name: str) -> NDArray[np.float64] | None:
        """Return such a column; None if there is no such table or column."""
        values = self.optional(table, name)
        return None if values is None else values / self.scale.size

    def by_class(
        self,
        values: NDArray[np.float64],
        statistic: Callable[..., Any],
        chance: NDArray[np.float64] | float | None = None,
        ceiling: NDArray[np.float64] | float | None = None,
    ) -> dict[str, ClassNumber]:
        """Return the statistic of the finite values, and of chance and ceiling, for each predicted class.

        Nothing of a model that gives a number.
        """
        if self.scale.unit is not None:
            return {}
        ends = np.stack(
            [np.broadcast_to(np.nan if x is None else x, values.shape) for x in (chance, ceiling)]
        )
        is_defined = np.isfinite(values)
        compared = is_defined & np.isfinite(ends).all(0)
        numbers = {}
        for i, name in enumerate(self.classes):
            is_class, is_compared = (
                is_defined & (self.predicted == i),
                compared & (self.predicted == i),
            )
            if is_class.any():
                compared_value, low, high = (
                    float(statistic(x[is_compared])) if is_compared.any() else math.nan
                    for x in (values, *ends)
                )
                number = float(statistic(values[is_class]))
                numbers[name] = ClassNumber(
                    number, int(is_class.sum()), low, high, int(is_compared.sum()), compared_value
                )
        return numbers

    def finding(
        self,
        key: str,
        kind: str,
        values: NDArray[np.float64],
        reasons: dict[str, NDArray[np.bool_]],
        statistic: Callable[..., Any] = np.mean,
        *,
        meaning: str,
        summary: str = "",
        chance: NDArray[np.float64] | float | None = None,
        ceiling: NDArray[np.float64] | float | None = None,
        lower: bool = False,
        clause: str = "",
        question: str,
        topic: str = "",
        measure: str,
    ) -> Finding:
        """Make a finding from one value per text; NaN is left out, counted under the first reason that fits.

        `meaning` says how to read the value; `summary` is appended to it where any value is defined. `chance`
        and `ceiling` are what chance and the best possible map reach on each text (NaN where unknown). With
        `lower` less is better, and the ceiling is below chance. `clause` names the value in the bottom line.
        """
        is_defined = np.isfinite(values)
        left_out = {}
        unexplained = ~is_defined
        for reason, rows in reasons.items():
            if count := int((unexplained & rows).sum()):
                left_out[reason] = count
            unexplained &= ~rows
        if count := int(unexplained.sum()):
            left_out["undefined: a measure is the same for all tokens"] = count
        defined = values[is_defined]
        value = float(statistic(defined)) if len(defined) else math.nan
        self.numbers[key] = TextNumbers(values, STATISTICS[statistic], BOUNDS.get(kind, (0.0, 1.0)))
        low, high = self.interval(kind, values, statistic)
        relative = self._relative(values, chance, ceiling, statistic, -1.0 if lower else 1.0)
        if relative is None:
            reading, level = grade(kind, value, low, high)
        else:
            reading, level = _reading(relative), "for comparison"
        distinct = len(np.unique(self.clusters[is_defined]))
        return Finding(
            key=key, kind=kind, value=value, low=low, high=high, n=len(defined), left_out=left_out,
            reading=reading, level=level, by_class=self.by_class(values, statistic, chance, ceiling),
            distinct=distinct, relative=relative, of_median=statistic is np.median,
            question=question, topic=topic, measure=measure,
            because=f"{clause} {reading}" if clause else f"{measure}: {reading}",
            no_interval="" if math.isfinite(low) else intervals.why_none(distinct, STATISTICS[statistic]),
            meaning=f"{meaning}; {summary}" if summary and len(defined) else meaning,
        )  # fmt: skip

    def interval(
        self, kind: str, values: NDArray[np.float64], statistic: Callable[..., Any] = np.mean
    ) -> tuple[float, float]:
        """Return the 95 % interval of a statistic (a key of STATISTICS) of the finite values, one per text."""
        is_defined = np.isfinite(values)
        defined, clusters = values[is_defined], self.clusters[is_defined]
        if STATISTICS[statistic] == "median":
            return intervals.of_median(defined, clusters, self.tail)
        bounds = BOUNDS.get(kind, (0.0, 1.0))
        return intervals.of_mean(defined, clusters, self.settings.seed, bounds, self.tail)

    def _relative(
        self,
        values: NDArray[np.float64],
        chance: NDArray[np.float64] | float | None,
        ceiling: NDArray[np.float64] | float | None,
        statistic: Callable[..., Any],
        sign: float,
    ) -> Relative | None:
        """Place the values between chance and ceiling."""
        if chance is None or ceiling is None:
            return None
        low, high = (np.broadcast_to(np.asarray(x, float), values.shape) for x in (chance, ceiling))
        shares = attained(sign * values, sign * low, sign * high)
        is_defined = np.isfinite(shares)
        if not is_defined.any():
            return None
        share_low, share_high = self.interval("relative", np.round(shares, ROUNDED))
        return Relative(
            value=float(statistic(values[is_defined])),
            chance=float(statistic(low[is_defined])),
            ceiling=float(statistic(high[is_defined])),
            share=float(shares[is_defined].mean()),
            low=share_low,
            high=share_high,
            n=int(is_defined.sum()),
        )

    def undefined(self, measure: str) -> dict[str, NDArray[np.bool_]]:
        """Return the texts for which a measure of importance is undefined, by reason."""
        reasons = {"undefined: one token": self.short}
        if measure == "integrated_gradients":
            missing = self.tables["integrated_gradients"]["importance"].is_null().to_numpy()
            reasons = {"not sampled for integrated gradients": missing, **reasons}
        return reasons


def _reading(relative: Relative) -> str:
    share = f"{signed_percent(relative.share)} of the attainable"
    if not math.isfinite(relative.low):
        return f"{share} (too few texts for an interval)"
    return f"{share} [{signed_percent(relative.low)}, {signed_percent(relative.high)}]"


def signed_percent(share: float) -> str:
    """Return a percentage, `none` if undefined; a share that rounds to 0 has no sign."""
    if not math.isfinite(share):
        return "none"
    return f"{share:z.0%}".replace("-", "−")


def attained(
    values: NDArray[np.float64], chance: NDArray[np.float64], ceiling: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (value − chance) / (ceiling − chance) per text, between −1 and 1; higher values are better.

    Where chance and ceiling are closer than LEAST_ROOM, as for equal weights, the text can hardly tell: its
    room counts as LEAST_ROOM, so that noise is not blown up.
    """
    return np.clip((values - chance) / np.maximum(ceiling - chance, LEAST_ROOM), -1.0, 1.0)


def does(name: str) -> str:
    """Return the verb for a measure's name."""
    return "do" if name.endswith("gradients") else "does"


def mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the finite values; NaN, without a warning, if there are none."""
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else math.nan


def percent(share: float) -> str:
    """Format a share as a percentage; `none` if undefined."""
    return f"{share:z.0%}" if math.isfinite(share) else "none"
