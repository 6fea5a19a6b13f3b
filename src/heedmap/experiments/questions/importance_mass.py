"""Do the words that the map highlights carry the importance?"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.disagreement import disagreement
from heedmap.experiments.methods.importance_measures import MEASURE_NAMES, MEASURES
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import text_table

IN_ORDER = ("leave_one_out", "gradient", "integrated_gradients")


COLUMNS = Columns(
    "One row per text. NaN where the measure is undefined, or 0 for all tokens.",
    {
        **shared("row"),
        "mass_{measure}": (
            "0 to 1",
            "share of the importance (by {measure}) that lies under the map, Σ α m / (Σ α Σ m); 1/n_tokens on "
            "average over all orders of the weights, if the importance did not depend on them",
        ),
        "largest_{measure}": (
            "0 to 1",
            "the same with the weights reordered, the largest on the most important token: what they at best "
            "reach",
        ),
    },
    measure=MEASURE_NAMES,
)


def importance_mass(context: AuditContext) -> pa.Table:
    """Return how much of the importance lies under the map, for each measure of importance."""
    heat = [
        np.array(weights, dtype=np.float64)
        for weights in context.table("instances")["attention"].to_pylist()
    ]
    columns: dict[str, object] = {}
    for measure in MEASURES[1:]:
        values = context.table(measure)["importance"].to_pylist()
        pairs = [
            None if v is None else (weights, np.array(v))
            for weights, v in zip(heat, values, strict=True)
        ]
        columns[f"mass_{measure}"] = [mass_under_map(*pair) if pair else np.nan for pair in pairs]
        columns[f"largest_{measure}"] = [
            mass_under_map(*map(np.sort, pair)) if pair else np.nan for pair in pairs
        ]
    return text_table(context, columns)


def mass_under_map(weights: NDArray[np.float64], importance: NDArray[np.float64]) -> float:
    """Return Σ α m / (Σ α Σ m); NaN where that is undefined.

    >>> round(mass_under_map(np.array([0.7, 0.2, 0.1]), np.array([0.4, 0.0, 0.1])), 3)
    0.58
    """
    total = weights.sum() * importance.sum()
    return float((weights * importance).sum() / total) if total > 0 else np.nan


# With the attention held fixed every one of these measures has the weight as a factor, so that random weights
# find more than 1/n of the importance that they make. Chance is what they find of it: see `baselines`.
def _findings(results: Results) -> list[Finding]:
    said = disagreement(results)
    return [
        _finding(results, measure, said if measure == IN_ORDER[0] else "") for measure in IN_ORDER
    ]


def _finding(results: Results, measure: str, note: str) -> Finding:
    """Judge the map by one measure; `note` is what is to be said of all of them."""
    name = MEASURE_NAMES[measure]
    values = results.column("importance_mass", f"mass_{measure}")
    mass_of_seeds = results.optional("baselines", f"mass_other_seed_{measure}")
    return results.finding(
        f"mass_{measure}",
        "importance_mass",
        np.where(results.short, np.nan, values),
        {**results.undefined(measure), "no word has any importance": np.isnan(values)},
        topic=f"importance found, by {name}",
        question=f"Do the words that the map highlights carry the importance, by {name}?",
        measure=f"mean share of the importance ({name}) that lies under the map's weights",
        clause=f"by {name}",
        meaning="each word counts as much as the map weights it; 1 = all weight on the only word that matters",
        summary="; ".join(filter(None, (note, _of_other_seed(results, mass_of_seeds)))),
        chance=results.optional("baselines", f"mass_shuffled_{measure}"),
        ceiling=results.column("importance_mass", f"largest_{measure}"),
    )


def _of_other_seed(results: Results, mass_of_seeds: NDArray[np.float64] | None) -> str:
    """Say how much lies under the maps of other seeds, and how alike they are to this one."""
    if mass_of_seeds is None:
        return ""
    alike = mean(results.column("baselines", "tau_other_seed"))
    return (
        f"of the same importance {mean(mass_of_seeds):.2f} lies under the maps of other seeds (their τ with "
        f"this one: mean {alike:.2f}; {int(np.isfinite(mass_of_seeds).sum())} texts)"
    ).replace("-", "−")


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [
        ("importance under the map, by leave-one-out", row["importance_mass"]["mass_leave_one_out"])
    ]


EXPERIMENT = Experiment(
    "importance_mass",
    importance_mass,
    columns=COLUMNS,
    needs=("reading", "gradients"),
    place=42,
    findings=_findings,
    facts=_facts,
    in_chunks=True,
)
