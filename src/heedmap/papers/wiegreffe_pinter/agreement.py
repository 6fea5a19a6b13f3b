"""Each trained adversary's map against its own importance, beside its control: a table, and what it shows.

This is a claim of Snell et al.'s slides on the paper; the numbers are those of the run's `adversary_agreement`.
"""

from dataclasses import dataclass

import numpy as np

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.adversary_agreement import (
    ASKED,
    Agreement,
    agreements,
    corrected,
)
from heedmap.experiments.questions.trained_adversary import name_of
from heedmap.experiments.repeats import text_numbers
from heedmap.papers.kit.claims import above, verdict_of_most
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.result import Estimate, Table

AGREEMENT_HOW = """τ-b of a model's map with its own leave-one-out (loo) and gradient, and the share of that \
importance under the map; in brackets chance, its weights shuffled within the text and the importance computed \
again. Means over the same sample of at most 100 test texts, one training each."""
SHORT = {"leave_one_out": "loo", "gradient": "gradient"}


def adversary_name(strength: float, direction: str) -> str:
    """Return what an adversary is called: its λ and the direction of KL, or the control."""
    return name_of(strength, direction) if strength else "λ = 0, the control"


@dataclass(frozen=True)
class Agreements:
    """The models of a run's table, `clusters` of equal texts, and which adversaries have learned."""

    models: list[Agreement]
    clusters: np.ndarray
    learned: Learned

    @classmethod
    def of(cls, audit: AuditResult, learned: Learned) -> "Agreements":
        """Read them from the tables of an audit."""
        clusters = text_numbers(audit.tables["instances"])
        return cls(
            agreements(audit.tables["adversary_agreement"], len(clusters)), clusters, learned
        )

    def name(self, model: Agreement) -> str:
        """Return what a model is called."""
        if model.model == "run":
            return "this model"
        return adversary_name(model.strength, model.direction)

    def table(self) -> Table:
        """Make a line per model: this one, the control and each adversary."""
        lines = []
        for model in self.models:
            name = self.name(model)
            cells = [
                f"{_mean(model, f'{number}_{measure}')} ({_mean(model, f'{number}_shuffled_{measure}')})"
                for number in ("tau", "mass")
                for measure in ASKED
            ]
            lines.append([self.learned.marked(name, name), *cells])
        heads = [*(f"τ, {SHORT[m]}" for m in ASKED), *(f"share, {SHORT[m]}" for m in ASKED)]
        title = "Does an adversary's map follow its own importance?"
        return Table(title, ["model", *heads], lines, AGREEMENT_HOW)

    def anti_correlated(self) -> tuple[str, list[str], Estimate | None]:
        """Judge whether adversaries' τ are below 0: the verdict, its numbers, and the one that decides.

        It is said of what adversaries become, so most comparisons must show it, each with its part of the error
        (Bonferroni); and it falls if most show a τ of 0 or more.
        """
        trained = [m for m in self.models[2:] if self.name(m) not in self.learned.failed]
        estimates, sides = [], []
        for model in trained:
            for measure in ASKED:
                values = model.numbers[f"tau_{measure}"]
                low, high = corrected(values, self.clusters, len(ASKED) * len(trained))
                if np.isnan(low):  # too few texts
                    continue
                # The claim is that τ is below 0: −τ is to be above it.
                name = f"−τ with its {SHORT[measure]}, {self.name(model)}"
                estimates.append(Estimate(name, -float(np.nanmean(values)), -high, -low))
                sides.append(above((-high, -low)))
        numbers = [e.text for e in estimates] or ["no adversary has learned"]
        middle = sorted(estimates, key=lambda number: -number.low)[len(estimates) // 2 :]
        return verdict_of_most(sides), numbers, next(iter(middle), None)


def _mean(model: Agreement, column: str) -> str:
    values = model.numbers[column]
    return f"{np.nanmean(values):.2f}".replace("-", "−") if np.isfinite(values).any() else "–"
