"""Is it fair to hand one model's weights to another? Guidance from other architectures and other seeds.

An open question of the survey: if a model does as well with any good model's weights as with those of its own
kind, they carry something that is not the model's own.
"""

import numpy as np
import pyarrow as pa

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.questions.guidance import single_words
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results
from heedmap.experiments.seeds import Seeds, over_seeds, predictions, right
from heedmap.experiments.text_tables import text_table
from heedmap.experiments.variants import Retraining, Variant, seeds

ENCODERS = ("lstm", "cnn", "average")


def variants(retraining: Retraining) -> list[Variant]:
    """Return the run's own model, by source of its weights (`sources`), from every seed."""
    return [variant for source in sources(retraining).values() for variant in source]


def sources(retraining: Retraining) -> dict[str, list[Variant]]:
    """Return the trainings by the source of the weights.

    `own`: learned with the rest; `uniform`; `base`: the run's, which is the same model from another seed;
    and those of the models of ENCODERS, one of each.
    """
    training_seeds, donor = seeds(retraining), retraining.seed + 1
    # One donor per encoder: what differs between seeds is then the reader, not the weights.
    by_source = {
        "own": [Variant(seed) for seed in training_seeds],
        "uniform": [Variant(seed, guide="uniform") for seed in training_seeds],
        "base": [Variant(seed, guide="base") for seed in training_seeds],
    }
    for encoder in ENCODERS:
        guide = Variant(donor, encoder=encoder)
        by_source[encoder] = [Variant(seed, guide=guide) for seed in training_seeds]
    return by_source


COLUMNS = Columns(
    "One row per text. Lists have a number per seed.",
    {
        **shared("row", "label", "predicted"),
        "{source}": (
            "list of classes",
            "what models like the run's predict with these weights: {source}",
        ),
    },
    source={
        "own": "learned with the rest",
        "uniform": "uniform",
        "base": "the run's",
        **{name: f"a model's with the encoder {name}" for name in ENCODERS},
    },
)


def transfer(context: AuditContext) -> pa.Table:
    """Return each text's classes by the run's kind of model: a list over seeds per source of weights."""
    retraining = context.retraining
    assert retraining is not None
    outcomes = iter(retraining.outcomes(variants(retraining)))
    columns = {
        source: predictions([next(outcomes) for _ in guided])
        for source, guided in sources(retraining).items()
    }
    return text_table(context, columns, copied=["label", "predicted"])


def _findings(results: Results) -> list[Finding]:
    transfers = results.tables["transfer"]
    label = results.column("transfer", "label").astype(int)
    words = {
        "own": "learned with the rest",
        "uniform": "uniform",
        "base": "this model's",
        **{name: f"a model's with the encoder {name}" for name in ENCODERS},
    }
    runs = {name: Seeds(transfers[name], label, results.classes) for name in words}
    base_accuracy, foreign = (
        np.mean([right(transfers[name], label).mean(1) for name in names], axis=0)
        for names in (("base",), ENCODERS)
    )
    return [
        results.finding(
            "transfer",
            "change",
            base_accuracy - foreign,
            {},
            topic="these weights in other models",
            question="Does a model of this kind do better with this model's weights than with others'?",
            measure="accuracy with the weights of this model less with those of models of other kinds",
            meaning=f"models of this kind that are given the weights, {runs['own'].count} trainings each",
            summary="accuracy (mean and 95 % interval over seeds): "
            + ", ".join(
                f"{words[name]} {over_seeds(trainings.accuracy)}"
                for name, trainings in runs.items()
            ),
        )
    ]


EXPERIMENT = Experiment(
    "transfer",
    transfer,
    columns=COLUMNS,
    needs=("classes",),
    place=160,
    applies=single_words,
    findings=_findings,
    variants=variants,
)
