"""From tables to findings: the questions of the card, in plain words."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.findings import Finding, interval, read
from heedmap.measures import LN2
from heedmap.settings import AuditSettings


def make_findings(
    tables: Mapping[str, pa.Table], settings: AuditSettings, classes: list[str]
) -> list[Finding]:
    """Every question that the tables can answer, in the order of the card."""
    makers = _Makers(tables, settings, classes)
    findings = [makers.skill()]
    if "agreement" in tables:
        findings += [
            makers.agreement("gradient", "the gradient"),
            makers.agreement("leave_one_out", "leave-one-out"),
            makers.agreement("integrated_gradients", "integrated gradients"),
            makers.yardstick(),
        ]
    if "permutation" in tables:
        findings.append(makers.permutation())
    if "adversary" in tables:
        findings.append(makers.adversary())
    if "rationale" in tables:
        findings += [
            makers.rationale(m, name)
            for m, name in (
                ("attention", "attention"),
                ("gradient", "the gradient"),
                ("leave_one_out", "leave-one-out"),
                ("integrated_gradients", "integrated gradients"),
            )
        ]
    return findings


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


class _Makers:
    def __init__(
        self, tables: Mapping[str, pa.Table], settings: AuditSettings, classes: list[str]
    ) -> None:
        self.tables, self.settings, self.classes = tables, settings, classes
        self.predicted = self._column("instances", "predicted").astype(int)
        self.short = self._column("instances", "n_tokens") < 2

    def _column(self, table: str, name: str) -> NDArray[np.float64]:
        values = self.tables[table][name].to_numpy().astype(np.float64)
        return np.asarray(values)

    def _finding(
        self,
        key: str,
        kind: str,
        values: NDArray[np.float64],
        reasons: dict[str, NDArray[np.bool_]],
        statistic: Callable[..., Any] = np.mean,
        **words: str,
    ) -> Finding:
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
        )  # fmt: skip

    def skill(self) -> Finding:
        label = self._column("instances", "label").astype(int)
        correct = (label == self.predicted).astype(np.float64)
        majority = float(np.bincount(label).max() / len(label))
        low, high = interval(correct, np.mean, self.settings.seed)
        value = float(correct.mean())
        lift = [
            (x - majority) / (1 - majority) if majority < 1 else math.nan
            for x in (value, low, high)
        ]
        reading, level = read("skill", lift[0], lift[1], lift[2])
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
        values = self._column("agreement", f"tau_attention_{measure}")
        p = self._column("agreement", f"p_attention_{measure}")
        used = np.isfinite(values)
        significant = _mean((p[used] <= 0.05).astype(float))
        return self._finding(
            f"agreement_{measure}",
            "tau",
            values,
            self._reasons(measure),
            question=f"Does attention rank the words as {name} {_does(name)}?",
            measure=f"mean Kendall tau-b, attention against {name}",
            meaning=f"1 = same order, 0 = unrelated; {_percent(significant)} of the texts significant at .05",
        )

    def yardstick(self) -> Finding:
        finding = self._finding(
            "agreement_yardstick",
            "tau",
            self._column("agreement", "tau_gradient_leave_one_out"),
            self._reasons("leave_one_out"),
            question="For scale: do gradient and leave-one-out rank the words alike?",
            measure="mean Kendall tau-b, gradient against leave-one-out",
            meaning="what two measures of importance reach with each other, without attention",
        )
        return Finding(**{**asdict(finding), "level": "undecided"})

    def permutation(self) -> Finding:
        flipped = self._column("permutation", "flipped")[~self.short]
        times = self.settings.permutations
        share = _mean((flipped >= 0.5).astype(float))
        return self._finding(
            "permutation",
            "tvd",
            np.where(self.short, np.nan, self._column("permutation", "median_tvd")),
            {"one token: nothing to permute": self.short},
            np.median,
            question="Does it matter which word gets which weight?",
            measure=f"median change of the prediction (TVD) under {times} shuffles of the weights",
            meaning=(
                "0 = no change, 1 = the opposite answer; most shuffles flip "
                f"{_percent(share)} of the texts"
            ),
        )

    def adversary(self) -> Finding:
        jsd = np.where(self.short, np.nan, self._column("adversary", "jsd"))
        upper = self._column("adversary", "jsd_upper")[~self.short]
        search = self._column("adversary", "search_jsd")[~self.short]
        exact = len(self.classes) == 2
        bound = (
            "" if exact else f"; at least this, at most {_number(_mean(upper) / LN2)} on average"
        )
        return self._finding(
            "adversary",
            "freedom",
            jsd / LN2,
            {"one token: no other weights": self.short},
            question="Could a very different heat map stand beside the same prediction?",
            measure=(
                f"mean of the largest JSD from the model's weights within {self.settings.epsilon:g} of its "
                "prediction, as a share of the maximum ln 2"
            ),
            meaning=(
                f"0 = no other heat map, 1 = one with nothing in common{bound}; the paper's search "
                f"finds {_number(_mean(search) / LN2)}"
            ),
        )

    def rationale(self, measure: str, name: str) -> Finding:
        values = self._column("rationale", f"auc_{measure}")
        hits = self._column("rationale", f"hit_{measure}")
        share = self._column("rationale", "rationale_share")
        finding = self._finding(
            f"rationale_{measure}",
            "auc",
            values,
            {
                "the rationale holds all words or none": (share == 0) | (share == 1),
                **self._reasons(measure),
            },
            question=f"{_does(name).title()} {name} find the words that decide the label?",
            measure=f"mean ROC AUC of {name} for the gold rationale",
            meaning=f"0.5 = chance, 1 = always; its first word is a deciding one in {_percent(_mean(hits))}",
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
