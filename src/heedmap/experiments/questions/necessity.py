"""Is attention needed? The same model trained with uniform weights (Wiegreffe & Pinter 2019, section 3.1).

If a model does as well without it, its attention explains nothing. And the model itself, read with uniform or
shuffled weights at test only, which it was not trained for (Vashishth et al. 2019).
"""

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from scipy import stats

from heedmap.counterfactual.row_weights import permuted, uniform
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.generators import named_generator
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results
from heedmap.experiments.seeds import Seeds, over_seeds, predictions, right
from heedmap.experiments.text_tables import text_table
from heedmap.experiments.variants import Retraining, Variant, seeds
from heedmap.measures import total_variation
from heedmap.models.attention_classifier import AttentionClassifier

SHUFFLES = 20
RESAMPLES = 9999  # of the paired test
DRAWN = 1 << 22  # numbers at a time: 32 MB


def variants(retraining: Retraining) -> list[Variant]:
    """Return the trainings with learned and with uniform weights, as many of each and with the same seeds."""
    return [
        *(Variant(seed) for seed in seeds(retraining)),
        *(Variant(seed, score="uniform") for seed in seeds(retraining)),
    ]


COLUMNS = Columns(
    "One row per text. Lists have a number per seed; those of `learned` and `uniform` are of the same seeds.",
    {
        **shared("row", "label", "predicted"),
        "learned": ("list of classes", "what models trained like the run's predict"),
        "uniform": ("list of classes", "what models trained with the weights 1/n predict"),
        "uniform_at_test": ("class", "what the run's model predicts with uniform weights"),
        "shuffled_right": (
            "0 to 1",
            f"share of {SHUFFLES} shuffles of the text's weights under which the run's model is right",
        ),
        "uniform_tvd": (
            "list, 0 to 1",
            "total variation distance of the predictions of the models of `uniform` from the run's",
        ),
    },
)


def necessity(context: AuditContext) -> pa.Table:
    """Return each text's predicted classes: of the run's model, and of lists of models, one per seed."""
    retraining = context.retraining
    assert retraining is not None
    outcomes = retraining.outcomes(variants(retraining))
    half = len(outcomes) // 2
    instances, total = context.table("instances"), len(context.split)
    even, shuffled = np.zeros(total, dtype=np.int64), np.zeros(total)
    distances = np.zeros((total, half))
    for trace in context.traces:
        rows = trace.rows.numpy(force=True)
        flat = uniform(trace.attention, trace.support).unsqueeze(0)
        even[rows] = context.model.predict(trace, flat)[0].argmax(-1).numpy(force=True)
        probabilities = trace.logits.double().cpu().softmax(-1)
        for seed, outcome in enumerate(outcomes[half:]):
            uniform_probabilities = torch.from_numpy(outcome.logits[rows]).softmax(-1)
            distances[rows, seed] = total_variation(probabilities, uniform_probabilities)
        labels = instances["label"].to_numpy()[rows]
        rngs = context.generators("necessity", trace.rows)
        for block in permuted(trace.attention, trace.support, SHUFFLES, rngs):
            shuffled_answers = context.model.predict(trace, block).argmax(-1).numpy(force=True)
            shuffled[rows] += (shuffled_answers == labels).sum(0)
    return text_table(
        context,
        {
            "learned": predictions(outcomes[:half]),
            "uniform": predictions(outcomes[half:]),
            "uniform_at_test": even,
            "shuffled_right": shuffled / SHUFFLES,
            "uniform_tvd": pa.array(list(distances), pa.list_(pa.float64())),
        },
        copied=["label", "predicted"],
    )


def paired_p(differences: NDArray[np.float64], seed: int) -> float:
    """Return the two-sided p of a mean difference of 0: the signs of the texts' differences are exchanged.

    1 where no text differs.
    """
    if not differences.any():
        return 1.0
    result = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=RESAMPLES, vectorized=True,
        batch=max(1, DRAWN // len(differences)),
        rng=named_generator(seed, "necessity"),
    )  # fmt: skip
    return float(result.pvalue)


def _findings(results: Results) -> list[Finding]:
    trainings = results.tables["necessity"]
    label = results.column("necessity", "label").astype(int)
    learned, even = (
        Seeds(trainings[name], label, results.classes) for name in ("learned", "uniform")
    )
    difference = right(trainings["learned"], label).mean(1) - right(
        trainings["uniform"], label
    ).mean(1)
    p = paired_p(difference, results.settings.seed)
    majority = float(np.bincount(label).max() / len(label)) if len(label) else np.nan
    map_right = results.column("necessity", "predicted") == label
    at_test = results.column("necessity", "uniform_at_test") == label
    shuffled = results.column("necessity", "shuffled_right")
    return [
        results.finding(
            "necessity",
            "change",
            difference,
            {},
            topic="accuracy with attention and without",
            question="Is the attention needed: does a model trained without it do worse?",
            measure=f"accuracy learned less uniform, mean of {learned.count} trainings each",
            meaning="0 = the model does as well with the same weight on every word",
            summary=f"accuracy {over_seeds(learned.accuracy)} learned, {over_seeds(even.accuracy)} uniform, "
            f"F1 {over_seeds(learned.f1)} and {over_seeds(even.f1)} (mean and 95 % interval over seeds), the "
            f"commonest class {majority:.3f}; paired test over texts p = {p:.2g}; this model, with other "
            f"weights at test only: {map_right.mean():.3f} with its own, {at_test.mean():.3f} uniform, "
            f"{shuffled.mean():.3f} shuffled",
        )
    ]


EXPERIMENT = Experiment(
    "necessity",
    necessity,
    columns=COLUMNS,
    needs=("classes",),
    place=150,
    applies=lambda model, split: isinstance(model, AttentionClassifier),
    findings=_findings,
    variants=variants,
    figures=("heedmap.report.retraining_figures:necessity",),
)
