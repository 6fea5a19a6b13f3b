"""Can a model be trained to predict the same and attend elsewhere? (Wiegreffe & Pinter 2019, section 4)

Adversarial weights of one text need no model that would come up with them. Here a whole model is trained to:
L = TVD − λ KL, for several λ and both directions of KL; λ = 0 is the control that may attend as it likes.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.questions.stability import noise
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import text_table
from heedmap.experiments.variants import Adversary, Direction, Outcome, Retraining, Variant
from heedmap.measures import jensen_shannon, kullback_leibler, total_variation
from heedmap.models.attention_classifier import AttentionClassifier

DIRECTIONS: tuple[Direction, ...] = ("adversary", "base")
SEED = "this run's seed + 1"  # that every adversary is trained with, in words


def variants(retraining: Retraining) -> list[Variant]:
    """Return the adversaries: both directions for every λ above 0, and one control."""
    settings = retraining.settings

    def adversary(strength: float, direction: Direction = "adversary") -> Variant:
        adversary_settings = Adversary(
            strength, direction, settings.adversary_epochs, settings.patience
        )
        return Variant(retraining.seed + 1, adversary=adversary_settings)

    strengths = sorted({*settings.lambdas} - {0.0})
    return [adversary(0.0), *(adversary(s, d) for d in DIRECTIONS for s in strengths)]


COLUMNS = Columns(
    "One row per adversary (direction and λ) and text.",
    {
        **shared("row"),
        "direction": (
            "adversary or base",
            "which of the two maps comes first in the KL of the loss",
        ),
        "strength": ("from 0", "λ, the weight of the KL in the loss; 0 is the control"),
        "predicted": ("class", "what the adversary predicts"),
        "epoch": ("count, from 1", "the kept epoch, the best on dev"),
        "dev_tvd": ("0 to 1", "mean total variation distance of the predictions on dev"),
        "dev_jsd": ("nats, 0 to ln 2", "mean Jensen-Shannon divergence of the maps on dev"),
        "tvd": ("0 to 1", "total variation distance of the adversary's prediction from the run's"),
        "jsd": ("nats, 0 to ln 2", "Jensen-Shannon divergence of the two maps"),
        "kl_adversary": ("nats, from 0", "KL(adversary's map ‖ the run's)"),
        "kl_base": ("nats, from 0", "KL(the run's map ‖ adversary's)"),
    },
)


def trained_adversary(context: AuditContext) -> pa.Table:
    """Compare each adversary with the run's model, text by text."""
    retraining = context.retraining
    assert retraining is not None
    trainings = variants(retraining)
    outcomes = retraining.outcomes(trainings)
    parts = [
        _compared(context, variant, outcome)
        for variant, outcome in zip(trainings, outcomes, strict=True)
    ]
    return pa.concat_tables(parts)


def _compared(context: AuditContext, variant: Variant, outcome: Outcome) -> pa.Table:
    assert variant.adversary is not None
    total = len(context.split)
    columns = {name: np.zeros(total) for name in ("tvd", "jsd", "kl_adversary", "kl_base")}
    for trace in context.traces:
        rows, heatmap = trace.rows.numpy(force=True), trace.heatmap.double().cpu()
        adversary_heatmap = outcome.attention.padded(trace.rows.cpu(), heatmap.shape[1]).double()
        probabilities = torch.from_numpy(outcome.logits[rows]).softmax(-1)
        columns["tvd"][rows] = total_variation(
            trace.logits.double().cpu().softmax(-1), probabilities
        )
        columns["jsd"][rows] = jensen_shannon(heatmap, adversary_heatmap)
        columns["kl_adversary"][rows] = kullback_leibler(adversary_heatmap, heatmap)
        columns["kl_base"][rows] = kullback_leibler(heatmap, adversary_heatmap)
    return text_table(
        context,
        {
            "direction": variant.adversary.direction,
            "strength": variant.adversary.strength,
            "predicted": outcome.predicted,
            "epoch": outcome.epoch,
            **{f"dev_{name}": outcome.dev[name] for name in ("tvd", "jsd")},
            **columns,
        },
    )


def name_of(strength: float, direction: str) -> str:
    """Put λ and the direction of KL in words."""
    divergence = "adversary ‖ base" if direction == "adversary" else "base ‖ adversary"
    return f"λ {strength:g}, KL({divergence})"


@dataclass(frozen=True)
class Trained:
    """One adversary: its λ and direction, its means on dev, and the TVD and JSD of each audited text."""

    direction: str
    strength: float
    dev_tvd: float
    dev_jsd: float
    tvd: NDArray[np.float64]
    jsd: NDArray[np.float64]

    @property
    def name(self) -> str:
        """Put λ and the direction of KL in words."""
        return name_of(self.strength, self.direction)


def adversaries(trained: pa.Table) -> list[Trained]:
    """Return the adversaries of a table, the control first."""
    names = ["row", "direction", "strength", "dev_tvd", "dev_jsd", "tvd", "jsd"]
    groups = trained.select(names).to_pandas().groupby(["strength", "direction"], sort=True)
    return [
        Trained(
            str(direction),
            float(strength),
            float(part["dev_tvd"].iloc[0]),
            float(part["dev_jsd"].iloc[0]),
            part.sort_values("row")["tvd"].to_numpy(),
            part.sort_values("row")["jsd"].to_numpy(),
        )
        for (strength, direction), part in groups
    ]


def answer_bound(results: Results) -> tuple[float, str]:
    """Return the TVD up to which an adversary's answers on dev are close, and what it is, in words."""
    change = results.optional("stability", "change")
    if change is None:
        return results.settings.epsilon, "the tolerance"
    return mean(change), "as another seed does"


def _findings(results: Results) -> list[Finding]:
    """Take the adversary that goes farthest on dev, of those that stay close; else the control."""
    models = adversaries(results.tables["trained_adversary"])
    control, long = models[0], ~results.short
    bound, allowed = answer_bound(results)
    close_models = [model for model in models[1:] if model.dev_tvd <= bound]
    shown_model = max(close_models, key=lambda model: model.dev_jsd) if close_models else control
    close = f"on dev within {bound:.3f} (TVD, {allowed})"
    seed_distance, answers = (
        noise(results),
        f"answers are {shown_model.tvd.mean():.3f} from this model's (TVD)",
    )
    notes = [] if np.isnan(seed_distance) else [f"another seed's map is {seed_distance:.2f} away"]
    if close_models:
        who = f"a trained adversary ({shown_model.name}, {SEED})"
        reason = f"of those that answer {close} the one that attends most differently there"
        control_distance = f"{mean(control.jsd[long]):.2f} at TVD {control.tvd.mean():.3f}"
        notes += [f"the control (λ = 0) {control_distance}", f"the adversary's {answers}"]
    else:
        who = f"the control (λ = 0, {SEED}), a model never asked to attend elsewhere"
        reason = f"no adversary was found, which is no evidence of one: of those trained none answers {close}"
        notes += [f"the control's {answers}"]
    return [
        results.finding(
            "trained_adversary",
            "jsd",
            np.where(results.short, np.nan, shown_model.jsd),
            {"undefined: one token": results.short},
            topic="a model trained to attend elsewhere",
            question="Can a model be trained to answer the same and attend to other words?",
            measure=f"mean JSD between this map and that of {who}",
            meaning=reason,
            summary="; ".join([*notes, "others stand in the figure"]),
        )
    ]


EXPERIMENT = Experiment(
    "trained_adversary",
    trained_adversary,
    columns=COLUMNS,
    needs=("classes",),
    place=156,
    per_text=False,
    applies=lambda model, split: isinstance(model, AttentionClassifier),
    findings=_findings,
    variants=variants,
    figures=("heedmap.report.retraining_figures:adversaries",),
)
