"""Do these weights help another model? A model without context, guided by them (Wiegreffe & Pinter 2019, 3.3).

The guided model looks at each word by itself, so what it gains comes from the weights. If the weights of the
run's model are better than uniform ones, and than those that the small model learns, they say something.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.questions.necessity import paired_p
from heedmap.experiments.questions.trained_adversary import SEED
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results
from heedmap.experiments.seeds import Seeds, over_seeds, predictions, right
from heedmap.experiments.text_tables import text_table
from heedmap.experiments.variants import Adversary, Guide, Retraining, Variant, seeds
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier

GUIDES: dict[str, str] = {
    "uniform": "uniform weights",
    "learned": "its own, learned",
    "base": "this map",
    "adversary": "a trained adversary's",
    "gradient": "the gradient",
    "leave_one_out": "leave-one-out",
    "read_out": "the read-out",
}
ENCODER = "average"  # a projection and tanh of each word: Wiegreffe & Pinter's MLP


def single_words(model: object, split: object) -> bool:
    """Return whether the model reads single texts of words: guides are of these."""
    return isinstance(model, TextClassifier) and not isinstance(model, HierarchicalClassifier)


def variants(retraining: Retraining) -> list[Variant]:
    """Return a guided model per guide and seed, in the order of GUIDES."""
    return [variant for name in GUIDES for variant in _guided(name, retraining)]


def _guided(name: str, retraining: Retraining) -> list[Variant]:
    plain = [Variant(seed, encoder=ENCODER) for seed in seeds(retraining)]
    if name == "learned":
        return plain
    if name == "adversary":
        settings = retraining.settings
        adversary = Adversary(
            max(settings.lambdas), "adversary", settings.adversary_epochs, settings.patience
        )
        return [
            replace(variant, guide=Variant(retraining.seed + 1, adversary=adversary))
            for variant in plain
        ]
    guides: dict[str, Guide] = {
        "uniform": "uniform", "base": "base", "gradient": "gradient", "leave_one_out": "leave_one_out",
        "read_out": "read_out",
    }  # fmt: skip
    return [replace(variant, guide=guides[name]) for variant in plain]


COLUMNS = Columns(
    "One row per text. Lists have a number per seed.",
    {
        **shared("row", "label", "predicted"),
        "{guide}": (
            "list of classes",
            f"what models with the encoder `{ENCODER}` predict, which read the text with these weights: "
            "{guide}",
        ),
    },
    guide=GUIDES,
)


def guidance(context: AuditContext) -> pa.Table:
    """Return each text's predicted classes by the guided models: a list over seeds per guide of GUIDES.

    `learned` has no guide. `adversary` is guided by the model that was trained against the run's with the
    largest λ; the importances are scaled to sum to 1.
    """
    retraining = context.retraining
    assert retraining is not None
    outcomes = iter(retraining.outcomes(variants(retraining)))
    count = retraining.settings.seeds
    columns = {name: predictions([next(outcomes) for _ in range(count)]) for name in GUIDES}
    return text_table(context, columns, copied=["label", "predicted"])


def _findings(results: Results) -> list[Finding]:
    guided = results.tables["guidance"]
    label = results.column("guidance", "label").astype(int)
    runs = {name: Seeds(guided[name], label, results.classes) for name in GUIDES}
    accuracy = {name: right(guided[name], label).mean(1) for name in GUIDES}
    difference = accuracy["base"] - accuracy["uniform"]
    against = {
        name: paired_p(accuracy["base"] - accuracy[name], results.settings.seed)
        for name in ("uniform", "learned")
    }
    listed = ", ".join(
        f"{GUIDES[name]} {over_seeds(trainings.accuracy)}" for name, trainings in runs.items()
    )
    majority = float(np.bincount(label).max() / len(label)) if len(label) else np.nan
    return [
        results.finding(
            "guidance",
            "change",
            difference,
            {},
            topic="these weights as a guide",
            question="Do this model's weights help a model that reads each word by itself?",
            measure=f"accuracy guided by this map less by uniform weights, {runs['base'].count} trainings each",
            meaning="0 = they say no more than where the words are",
            summary=f"accuracy (mean and 95 % interval over seeds): {listed}; the commonest class "
            f"{majority:.3f}; paired test against uniform p = {against['uniform']:.2g}, against its own p = "
            f"{against['learned']:.2g}; the adversary is that of the largest λ, KL(adversary ‖ base), {SEED}, "
            "whether its answers stay close or not",
        )
    ]


EXPERIMENT = Experiment(
    "guidance",
    guidance,
    columns=COLUMNS,
    needs=("classes",),
    place=154,
    applies=single_words,
    findings=_findings,
    variants=variants,
    figures=("heedmap.report.retraining_figures:guidance",),
)
