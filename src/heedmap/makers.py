"""The questions of the card about one heat map, each answered from the tables in plain words."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.findings import BANDS, Finding, interval, read
from heedmap.measures import LN2
from heedmap.settings import PLAIN, SLOW, AuditSettings, ModelSettings, TransformerSettings

NOT_ASKED = "not asked: the flow would have to be recomputed for every weighting that is tried"
HELD = "the map hardly follows the layer's weights, whatever is predicted"
VERY_DIFFERENT = next(edge for edge, level, _ in reversed(BANDS["freedom"]) if level == "against")


def _does(name: str) -> str:
    return "do" if name.endswith("gradients") else "does"


def _mean(values: NDArray[np.float64]) -> float:
    """The mean of what is defined; NaN, without a warning, of nothing."""
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else math.nan


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "none"


def _percent(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) else "none"


class Makers:
    """One maker a question; what they share."""

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        settings: AuditSettings,
        classes: list[str],
        model: ModelSettings | TransformerSettings | None = None,
    ) -> None:
        self.tables, self.settings, self.classes, self.model = tables, settings, classes, model
        self.predicted = self.column("instances", "predicted").astype(int)
        self.short = self.column("instances", "n_tokens") < 2
        self.view = model.view if isinstance(model, TransformerSettings) else PLAIN[0]
        self.derived = self.view not in PLAIN

    def column(self, table: str, name: str) -> NDArray[np.float64]:
        """A column of numbers, null as NaN."""
        values = self.tables[table][name].to_numpy().astype(np.float64)
        return np.asarray(values)

    def finding(
        self,
        key: str,
        kind: str,
        values: NDArray[np.float64],
        reasons: dict[str, NDArray[np.bool_]],
        statistic: Callable[..., Any] = np.mean,
        *,
        meaning: str,
        told: str = "",
        **words: str,
    ) -> Finding:
        """A finding from one value an instance; NaN is left out, counted under the first reason that fits.

        `meaning` says how to read the value; `told`, what else was found, is added where anything was.
        """
        used = np.isfinite(values)
        left_out = {}
        unexplained = ~used
        for reason, rows in reasons.items():
            if count := int((unexplained & rows).sum()):
                left_out[reason] = count
            unexplained &= ~rows
        if count := int(unexplained.sum()):
            left_out["undefined: a measure is the same for all tokens"] = count
        kept = values[used]
        value = float(statistic(kept)) if len(kept) else math.nan
        low, high = interval(kept, statistic, self.settings.seed)
        reading, level = read(kind, value, low, high)
        by_class = {
            name: float(statistic(values[used & (self.predicted == i)]))
            for i, name in enumerate(self.classes)
            if (used & (self.predicted == i)).any()
        }
        return Finding(
            key=key, kind=kind, value=value, low=low, high=high, n=len(kept), left_out=left_out,
            reading=reading, level=level, by_class=by_class, **words,
            meaning=f"{meaning}; {told}" if told and len(kept) else meaning,
        )  # fmt: skip

    def skill(self) -> Finding:
        """Accuracy against the commonest class."""
        label = self.column("instances", "label").astype(int)
        correct = (label == self.predicted).astype(np.float64)
        majority = float(np.bincount(label).max() / len(label))
        low, high = interval(correct, np.mean, self.settings.seed)
        value = float(correct.mean())
        lift = [
            (x - majority) / (1 - majority) if majority < 1 else math.nan
            for x in (value, low, high)
        ]
        reading, level = read("skill", lift[0], lift[1], lift[2])
        if majority == 1:
            reading = "one class only among the audited texts: nothing to compare with"
        return Finding(
            key="skill",
            kind="skill",
            question="Does the model predict well enough to be worth explaining?",
            measure="accuracy on the audited test texts",
            value=value,
            low=low,
            high=high,
            n=len(correct),
            left_out={},
            reading=reading,
            level=level,
            meaning=f"always answering with the commonest class would score {majority:.3f}",
            by_class={
                name: float(correct[self.predicted == i].mean())
                for i, name in enumerate(self.classes)
                if (self.predicted == i).any()
            },
        )

    def agreement(self, measure: str, name: str) -> Finding:
        """Attention against one other measure."""
        values = self.column("agreement", f"tau_attention_{measure}")
        p = self.column("agreement", f"p_attention_{measure}")
        used = np.isfinite(values)
        significant = p[used] <= 0.05
        told = f"{_percent(_mean(significant.astype(float)))} of the texts significant at .05"
        if (reverse := significant & (values[used] < 0)).any():
            told += f", {_percent(_mean(reverse.astype(float)))} in the reverse order"
        return self.finding(
            f"agreement_{measure}",
            "tau",
            values,
            self._reasons(measure),
            question=f"Does attention rank the words as {name} {_does(name)}?",
            measure=f"mean Kendall tau-b, attention against {name}",
            meaning="1 = same order, 0 = unrelated, −1 = the reverse",
            told=told,
        )

    def yardstick(self) -> Finding:
        """Gradient against leave-one-out."""
        finding = self.finding(
            "agreement_yardstick",
            "tau",
            self.column("agreement", "tau_gradient_leave_one_out"),
            self._reasons("leave_one_out"),
            question="For scale: do gradient and leave-one-out rank the words alike?",
            measure="mean Kendall tau-b, gradient against leave-one-out",
            meaning="what two measures of importance reach with each other, without attention",
        )
        return Finding(**{**asdict(finding), "level": "undecided"})

    def permutation(self) -> Finding:
        """Shuffled weights."""
        flipped = self.column("permutation", "flipped")[~self.short]
        times = self.settings.permutations
        share = _mean((flipped >= 0.5).astype(float))
        return self.finding(
            "permutation",
            "tvd",
            np.where(self.short, np.nan, self.column("permutation", "median_tvd")),
            {"one token: nothing to permute": self.short},
            np.median,
            question="Does it matter which word gets which weight?"
            if not self.derived
            else "Does it matter which position gets which weight in the layer?",
            measure=f"median change of the prediction (TVD) under {times} shuffles of the weights"
            + (" of the layer, of which the map is made" if self.derived else ""),
            meaning="0 = no change, 1 = the opposite answer",
            told=f"most shuffles flip {_percent(share)} of the texts",
        )

    def uniform(self) -> Finding:
        """Uniform weights, at test only."""
        flipped = self.column("permutation", "uniform_flipped")[~self.short]
        return self.finding(
            "uniform",
            "tvd",
            np.where(self.short, np.nan, self.column("permutation", "uniform_tvd")),
            {"one token: it has all the weight": self.short},
            np.median,
            question="Does it matter that the weights are not all the same?"
            if not self.derived
            else "Does it matter that the layer's weights are not all the same?",
            measure="median change of the prediction (TVD) under uniform weights"
            + (" in the layer" if self.derived else "")
            + ", at test only",
            meaning="0 = no change, 1 = the opposite answer",
            told=f"another class is predicted for {_percent(_mean(flipped))} of the texts",
        )

    def adversary(self) -> Finding:
        """The most different heat map with the same prediction."""
        jsd = np.where(self.short, np.nan, self.column("adversary", "jsd"))
        used = np.isfinite(jsd)
        upper = self.column("adversary", "jsd_upper")[used]
        most = _mean(upper) / LN2
        bound = f"at least this, at most {_number(most)} on average"
        if self.view == "rollout":
            bound += " (under any weights of the layer, whatever is predicted)"
        columns = self.tables["adversary"].column_names
        papers = ""
        if "search_jsd" in columns:
            search = self.column("adversary", "search_jsd")[used]
            papers = f"the paper's search finds {_number(_mean(search) / LN2)}"
        if "on_text" not in columns:
            how = papers if len(self.classes) == 2 else f"{bound}; {papers}"
        elif papers:
            pairs = "query" in self.tables["instances"].column_names
            why = (
                ""
                if pairs
                else f" ({len(self.classes)} classes are too many for a bound of each two)"
            )
            how = f"found by search{why}, so {bound}; {papers}"
        else:
            times = f"{self.settings.search_restarts} starts of {self.settings.search_steps} steps"
            on_text = [_mean(self.column("adversary", c)) for c in ("on_text_before", "on_text")]
            how = (
                f"found by search ({times}), so {bound}; of the {'layer’s ' if self.derived else ''}mass "
                f"{_percent(on_text[0])} are on words before, {_percent(on_text[1])} after"
            )
        finding = self.finding(
            "adversary",
            "freedom",
            jsd / LN2,
            {
                NOT_ASKED: np.full(len(jsd), self.view in SLOW),
                "one token: no other weights": self.short,
                "not sampled for the search": np.isnan(jsd) & ~self.short,
            },
            question="Could a very different heat map stand beside the same prediction?",
            measure=(
                f"mean of the largest JSD from the model's heat map within {self.settings.epsilon:g} of its "
                "prediction, as a share of the maximum ln 2"
            ),
            meaning="0 = no other heat map, 1 = one with nothing in common",
            told=how,
        )
        if self.view in SLOW:
            return replace(finding, reading="not asked of this view")
        if self.view == "rollout" and most < VERY_DIFFERENT:
            # Not pinned down by the prediction: the layers below and the residual connection hold it.
            return replace(finding, reading=HELD, level="undecided")
        return finding

    def rationale(self, measure: str, name: str) -> Finding:
        """One measure against the gold rationale."""
        values = self.column("rationale", f"auc_{measure}")
        hits = self.column("rationale", f"hit_{measure}")
        share = self.column("rationale", "rationale_share")
        finding = self.finding(
            f"rationale_{measure}",
            "auc",
            values,
            {
                "the rationale holds all words or none": (share == 0) | (share == 1),
                **self._reasons(measure),
            },
            question=f"{_does(name).title()} {name} find the words that decide the label?",
            measure=f"mean ROC AUC of {name} for the gold rationale",
            meaning="0.5 = chance, 1 = always",
            told=f"its first word is a deciding one in {_percent(_mean(hits))}",
        )
        if measure == "attention":
            return finding
        return Finding(**{**asdict(finding), "level": "undecided"})

    def _reasons(self, measure: str) -> dict[str, NDArray[np.bool_]]:
        reasons = {"undefined: one token": self.short}
        if measure == "integrated_gradients":
            missing = self.tables["integrated_gradients"]["importance"].is_null().to_numpy()
            reasons = {"not sampled for integrated gradients": missing, **reasons}
        return reasons
