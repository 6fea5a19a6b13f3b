"""Which mix of a model's heads, and which single map, comes nearest to leave-one-out?"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import nnls

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.pooling import TEXT, by_text
from heedmap.experiments.questions.scan import MAP, PASSES, SCAN_SHARE
from heedmap.experiments.registry import Experiment
from heedmap.experiments.repeats import first_half, text_numbers
from heedmap.experiments.text_tables import map_table
from heedmap.models.layered import Layered

FITTED = "row"  # the view whose heads are mixed: what the classifier reads
SHUFFLES = 5  # of leave-one-out, within each text; each is fitted anew
TRIES = 100  # of the solver, per head

Floats = NDArray[np.float64]


COLUMNS = Columns(
    "One row per text and map of the model, for a sample of the texts. The weights of the mix are the same for "
    "all texts; half of these choose them.",
    {
        **shared("row"),
        **MAP,
        "mass": (
            "0 to 1",
            "Σ α m, the share of leave-one-out that lies under the map; NaN where that is undefined or 0",
        ),
        "mixed": (
            "0 to 1",
            "the map's weight in the mix of heads fitted to leave-one-out (non-negative least squares, scaled "
            "to sum to 1 over the maps)",
        ),
        "single": ("0 or 1", "whether it is the map that finds most of leave-one-out"),
        "mixed_shuffled": (
            "0 to 1",
            f"mean weight where leave-one-out is shuffled within each text, {SHUFFLES} times",
        ),
        "single_shuffled": ("0 to 1", "share of these in which it is the map that finds most"),
    },
)


def head_mixture(context: AuditContext) -> pa.Table:
    """Fit a mix of heads, and choose a single map, by leave-one-out on half of the sampled texts.

    The mix is of the heads' rows. A map that is zero for all words counts as even; one that is not computed for
    some text is not a candidate.
    """
    model = context.model
    assert isinstance(model, Layered)
    layer_maps = model.maps()
    fitted = [i for i, m in enumerate(layer_maps) if m.view == FITTED and m.head is not None]
    sample, half = sampled(context)
    choosing = set(sample[half].tolist())
    problem = LeastSquares(len(fitted), 1 + SHUFFLES)
    rows: list[int] = []
    mass_lists: list[Floats] = []  # of each text: by map, for leave-one-out and its shuffles
    for batch in context.batches_of(sample, shares=SCAN_SHARE):
        maps = model.heat_maps(batch, layer_maps).double().numpy(force=True)
        equations = []
        rngs = context.generators("mix", batch.rows)
        for row, padded, rng in zip(batch.rows.tolist(), maps, rngs, strict=True):
            target = importance_of(context, row)
            of_text = even_if_zero(padded[:, : len(target)])
            shuffled = rng.permuted(np.tile(target, (SHUFFLES, 1)), axis=1)
            targets = np.vstack([target, shuffled])
            rows.append(row)
            mass_lists.append(of_text @ targets.T)
            # Texts that judge the mix do not enter its fit.
            if row in choosing and np.isfinite(target).all():
                equations.append(np.hstack([of_text[fitted].T, targets.T]))
        if equations:
            problem.add(np.vstack(equations))
    masses = np.stack(mass_lists)
    mixes = np.zeros((1 + SHUFFLES, len(layer_maps)))
    mixes[:, fitted] = [problem.solve(k) for k in range(1 + SHUFFLES)]
    singles = _best(masses, np.isin(rows, list(choosing)))
    count = len(rows)
    return map_table(
        rows,
        layer_maps,
        {
            "mass": masses[:, :, 0].ravel(),
            "mixed": np.tile(mixes[0], count),
            "mixed_shuffled": np.tile(mixes[1:].mean(0), count),
            "single": np.tile(singles[0], count),
            "single_shuffled": np.tile(singles[1:].mean(0), count),
        },
    )


def sampled(context: AuditContext) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the rows of the sample, and which of them choose what is measured on the others.

    All windows of a text, and all texts of the same words, are on one side. The first texts drawn are those
    of integrated gradients, if these are fewer.
    """
    settings = context.settings
    sample = context.sample("integrated_gradients", settings.scan_instances)
    instances = context.table("instances")
    texts = text_numbers(by_text({"instances": instances})["instances"])
    if context.split.text_of is not None:
        texts = texts[instances[TEXT].to_numpy()]
    return sample, first_half(texts[sample], settings.seed)


def importance_of(context: AuditContext, row: int) -> Floats:
    """Return a text's leave-one-out, divided by its sum; NaN if that is 0 or undefined."""
    values = np.array(context.table("leave_one_out")["importance"][row].as_py(), dtype=np.float64)
    total = values.sum()
    return values / total if total > 0 else np.full(len(values), np.nan)


def even_if_zero(maps: Floats) -> Floats:
    """Scale maps (..., T) to sum to 1; a map of zeros highlights no word, and becomes even."""
    total = maps.sum(-1, keepdims=True)
    scaled: Floats = np.where(total == 0, 1 / maps.shape[-1], maps / np.where(total == 0, 1, total))
    return scaled


def _best(masses: Floats, choosing: NDArray[np.bool_]) -> Floats:
    """Return 1 for the map that finds most on the choosing texts, else 0, of each target: (targets, maps)."""
    weights = np.zeros(masses.shape[:0:-1])
    defined = choosing & np.isfinite(masses).any((1, 2))
    if defined.any():
        means = masses[defined].mean(0)
        # NaN in any text: a map that is not always there cannot be shown.
        judged = masses[np.isfinite(masses).any((1, 2))]
        means[~np.isfinite(judged).all((0, 2))] = -np.inf
        weights[np.arange(len(weights)), means.argmax(0)] = 1.0
    return weights


@dataclass
class LeastSquares:
    """Least squares with several targets, of which the equations are not kept but their QR factor.

    ‖A x − b‖ = ‖R x − Qᵀb‖ + a constant for [A b] = Q [R Qᵀb], and a factor of factors is one of the whole.
    """

    unknowns: int
    targets: int
    factor: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.factor = np.zeros((0, self.unknowns + self.targets))

    def add(self, equations: Floats) -> None:
        """Add equations: unknowns' coefficients, then the targets."""
        self.factor = np.asarray(np.linalg.qr(np.vstack([self.factor, equations]), mode="r"))

    def solve(self, target: int) -> Floats:
        """Return the non-negative solution for a target, scaled to sum to 1; zeros if it is zero."""
        if not len(self.factor):
            return np.zeros(self.unknowns)
        coefficients, goal = self.factor[:, : self.unknowns], self.factor[:, self.unknowns + target]
        solution, _ = nnls(coefficients, goal, maxiter=TRIES * self.unknowns)
        total = solution.sum()
        return np.asarray(solution / total if total > 0 else solution)


def _cost(probe: CostProbe) -> float:
    return probe.reading(PASSES, probe.context.settings.scan_instances)


EXPERIMENT = Experiment(
    "head_mixture",
    head_mixture,
    columns=COLUMNS,
    place=93,
    per_text=False,
    applies=lambda model, split: isinstance(model, Layered),
    figures=("heedmap.report.head_figures:mixed",),
    cost=_cost,
)
