"""What would chance reach, and what a perfect map? The same questions asked of other weights on the same texts.

With the attention held fixed a gradient has the weight as a factor, and leave-one-out nearly so: random
weights "agree" with both. So chance is not 0. It is measured: the weights are shuffled within the text, or
drawn at random, and every importance is computed again under them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.permute import orders
from heedmap.counterfactual.row_weights import dirichlet, permuted
from heedmap.data.batches import Batch
from heedmap.data.texts import Text
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import BACKWARD, CostProbe
from heedmap.experiments.methods.importance_measures import MEASURE_NAMES
from heedmap.experiments.methods.kendall import tau_against
from heedmap.experiments.questions.importance import (
    GRADIENT_SHARE,
    change_without,
    integrated_seconds,
    leave_one_out_seconds,
    signed_change_without,
)
from heedmap.experiments.registry import Experiment, HeatMap, Row
from heedmap.experiments.text_tables import SampledColumn, text_table
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each, logits_without_each_under
from heedmap.measures import levelled
from heedmap.models.trace import Model, Trace
from heedmap.settings.audit import AuditSettings
from heedmap.terminal.progress import portion

SHUFFLES = 3  # per text; the texts are many
TEXTS = 100  # of the sample of integrated gradients: every one is read again many times


COLUMNS = Columns(
    f"One row per text. Null where the text was not sampled (at most {TEXTS} are), or the number is undefined.",
    {
        **shared("row"),
        "tau_shuffled_{measure}": (
            "−1 to 1",
            f"mean tau-b of the map with {{measure}} under {SHUFFLES} shuffles of the weights within the text, "
            "the measure computed again under each (integrated gradients under the first)",
        ),
        "mass_shuffled_{measure}": (
            "0 to 1",
            "mean share of the importance (by {measure}) that lies under those weights, the importance "
            "computed again under each: what weights that know nothing find",
        ),
        "against_shuffled": (
            "0 to 1",
            "mean share of the mass of those weights on tokens without which the class predicted under them is "
            "likelier",
        ),
        "tau_random_{quick}": (
            "−1 to 1",
            "the same tau-b under weights from a uniform Dirichlet distribution, with {quick}",
        ),
        "tau_twin_{quick}": (
            "−1 to 1",
            "tau-b with {quick}, of the model with its parameters shuffled within each tensor",
        ),
        "tau_largest_{measure}": (
            "−1 to 1",
            "the largest tau-b that the ties of the map and {measure} allow",
        ),
        "tau_other_seed": (
            "−1 to 1",
            "mean tau-b of the map with those of the same model from other trainings (--other-seed)",
        ),
        "tau_other_seed_{measure}": (
            "−1 to 1",
            "mean tau-b of the other trainings' maps with {measure} of this model",
        ),
        "mass_other_seed_{measure}": (
            "0 to 1",
            "mean share of the importance (by {measure}) of this model under the other trainings' maps",
        ),
        "attention_{training}": (
            "list per token, from 0",
            "the map of the same model from the other training {training}, named by its seed, or by its place "
            "among them where its seed is not known",
        ),
    },
    measure=MEASURE_NAMES,
    quick={name: words for name, words in MEASURE_NAMES.items() if name != "integrated_gradients"},
)


def baselines(context: AuditContext) -> pa.Table:
    """Return what shuffled, random and best possible weights reach, for at most TEXTS of the texts.

    Random weights and the shuffled model are asked without integrated gradients, which are slow.
    """
    settings = context.settings
    sample = context.sample("integrated_gradients", settings.integrated_gradients_instances)
    rows_asked = sample[np.sort(context.generator("baselines").permutation(len(sample))[:TEXTS])]
    columns = _Columns()
    importance_lists = {name: context.table(name)["importance"] for name in MEASURE_NAMES}
    with portion(0.8):
        for batch in context.batches_of(rows_asked, shares=GRADIENT_SHARE):
            trace = context.model.trace(batch)
            rows, mask = batch.rows.tolist(), trace.mask
            texts = [context.texts[row] for row in rows]
            heatmap_by_training = _maps_of_other_seeds(context, rows, texts)
            other_heatmaps = [*heatmap_by_training.values()]
            for training, heatmap in heatmap_by_training.items():
                columns.put_lists(rows, f"attention_{training}", heatmap, mask)
            if other_heatmaps:
                alike = [
                    tau_of_map(trace.heatmap, levelled(other_heatmap, mask), mask)
                    for other_heatmap in other_heatmaps
                ]
                columns.put(rows, "tau_other_seed", torch.stack(alike).nanmean(0))
            for name in MEASURE_NAMES:
                values = _padded([importance_lists[name][row].as_py() for row in rows], trace)
                largest = tau_of_map(ascending(trace.heatmap, mask), ascending(values, mask), mask)
                columns.put(rows, f"tau_largest_{name}", largest)
                if other_heatmaps:
                    alike = [
                        tau_of_map(other_heatmap, values, mask) for other_heatmap in other_heatmaps
                    ]
                    columns.put(rows, f"tau_other_seed_{name}", torch.stack(alike).nanmean(0))
                    under = [
                        share_under(other_heatmap, values, mask) for other_heatmap in other_heatmaps
                    ]
                    columns.put(rows, f"mass_other_seed_{name}", torch.stack(under).mean(0))
            # Only the weights differ: every shortened text is read once for all kinds.
            drawn = _drawn(context, trace)
            weightings = torch.cat(list(drawn.values()))
            heat = context.model.to_heatmap(trace, weightings)
            measured = list(
                importance_under(
                    context.model, settings, batch, trace, texts, weightings, slow=True
                )
            )
            start = 0
            for kind, weights in drawn.items():
                places = slice(start, start + len(weights))
                start = places.stop
                for name, every_importance, every_signed in measured:
                    importance = every_importance[places]
                    if not len(importance):
                        continue  # integrated gradients are asked under the first weighting alone
                    heatmaps = heat[places][: len(importance)]
                    pairs = zip(heatmaps, importance, strict=True)
                    taus = torch.stack([tau_of_map(*pair, mask) for pair in pairs])
                    columns.put(rows, f"tau_{kind}_{name}", mean_over_orders(taus, trace))
                    if kind == "random":
                        continue
                    importance_mass = share_under(heatmaps, importance, mask)
                    columns.put(
                        rows, f"mass_{kind}_{name}", mean_over_orders(importance_mass, trace)
                    )
                    if every_signed is not None:
                        mass = _mass_against(heatmaps, every_signed[places], mask)
                        columns.put(rows, f"against_{kind}", mean_over_orders(mass, trace))
    with portion(0.2), randomised(context.model, context.torch_generator("randomised")):
        for batch in context.batches_of(rows_asked, shares=GRADIENT_SHARE):
            trace = context.model.trace(batch)
            rows = batch.rows.tolist()
            texts = [context.texts[row] for row in rows]
            for name, values in importance_of(context.model, settings, batch, trace, texts):
                columns.put(rows, f"tau_twin_{name}", tau_of_map(trace.heatmap, values, trace.mask))
    return text_table(context, columns.sampled())


def _maps_of_other_seeds(
    context: AuditContext, rows: Sequence[int], texts: Sequence[Text]
) -> dict[str, Float[Tensor, "B T"]]:
    """Return the heat maps of the model from other trainings, by the trainings' names."""
    return {
        training: model.trace(model.batch(texts, rows)).heatmap
        for training, model in context.other_seeds.items()
    }


@contextmanager
def randomised(model: Model, generator: torch.Generator) -> Iterator[None]:
    """Shuffle the numbers within each parameter of a model; afterwards they are as before."""
    parameters = list(model.parameters())
    original_values = [parameter.detach().clone() for parameter in parameters]
    try:
        with torch.no_grad():
            for parameter in parameters:
                order = torch.randperm(parameter.numel(), generator=generator)
                flat = parameter.flatten()[order.to(parameter.device)]
                parameter.copy_(flat.view_as(parameter))
        yield
    finally:
        with torch.no_grad():
            for parameter, values in zip(parameters, original_values, strict=True):
                parameter.copy_(values)


def _drawn(context: AuditContext, trace: Trace) -> dict[str, Float[Tensor, "S B K P"]]:
    """Return the weights that are imposed instead of the model's, by kind; the shuffled ones come first."""
    rngs = context.generators("baselines", trace.rows)
    shuffles = permuted(trace.attention, trace.support, SHUFFLES, rngs)
    return {
        "shuffled": torch.cat(list(shuffles)),
        "random": dirichlet(trace.attention, trace.support, rngs).unsqueeze(0),
    }


def mean_over_orders(values: Float[Tensor, "S B"], trace: Trace) -> Float[Tensor, " B"]:
    """Return the mean over the weightings drawn; of a text with fewer orders each order counts once."""
    counts = [min(count, len(values)) for count in orders(trace.support.sum(-1))]
    once = torch.arange(len(values)).unsqueeze(1) < torch.tensor(counts)
    return values.where(once.to(values.device), torch.nan).nanmean(0)


def importance_under(
    model: Model,
    settings: AuditSettings,
    batch: Batch,
    trace: Trace,
    texts: Sequence[Text],
    weightings: Float[Tensor, "S B K P"],
    *,
    slow: bool,
) -> Iterator[tuple[str, Float[Tensor, "some B T"], Float[Tensor, "some B T"] | None]]:
    """Yield the importance under each weighting; if `slow`, integrated gradients under the first one too.

    Beside leave-one-out comes what the class that is predicted under the weights loses without each token.
    """
    logits = model.predict(trace, weightings)
    traces = [
        replace(trace, attention=weights, logits=under)
        for weights, under in zip(weightings, logits, strict=True)
    ]
    yield (
        "gradient",
        torch.stack(
            [
                gradient_importance(model, batch, weighted_trace, quantity=settings.gradient_of)
                for weighted_trace in traces
            ]
        ),
        None,
    )
    without = logits_without_each_under(
        model, batch, trace, texts, weightings, settings.leave_one_out
    ).to(logits)
    pairs = [*zip(logits, without, strict=True)]
    yield (
        "leave_one_out",
        torch.stack([change_without(*pair, model.precision) for pair in pairs]),
        torch.stack([signed_change_without(*pair, model.precision) for pair in pairs]),
    )
    if not slow:
        return
    steps = settings.integrated_gradients_steps
    values, _ = integrated_gradients(model, batch, traces[0], steps, traces[0].attention)
    yield "integrated_gradients", values.unsqueeze(0), None


def importance_of(
    model: Model, settings: AuditSettings, batch: Batch, trace: Trace, texts: Sequence[Text]
) -> Iterator[tuple[str, Float[Tensor, "B T"]]]:
    """Yield a model's gradient and leave-one-out under its own weights, as the audit asks them."""
    yield (
        "gradient",
        gradient_importance(
            model,
            batch,
            trace,
            path=settings.gradient_path,
            quantity=settings.gradient_of,
        ),
    )
    without = logits_without_each(model, batch, texts, settings.leave_one_out).to(trace.logits)
    yield "leave_one_out", change_without(trace.logits, without, model.precision)


class _Columns:
    """Numbers per text by column, null where there is none or it is NaN, and lists per token."""

    def __init__(self) -> None:
        self.numbers: dict[str, dict[int, float]] = {}
        self.lists: dict[str, dict[int, list[float]]] = {}

    def put(self, rows: Sequence[int], name: str, values: Float[Tensor, " B"]) -> None:
        column = self.numbers.setdefault(name, {})
        column.update(zip(rows, values.double().tolist(), strict=True))

    def put_lists(
        self,
        rows: Sequence[int],
        name: str,
        values: Float[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
    ) -> None:
        column = self.lists.setdefault(name, {})
        for row, numbers, is_token in zip(rows, values.double().cpu(), mask.cpu(), strict=True):
            column[row] = numbers[is_token].tolist()

    def sampled(self) -> dict[str, SampledColumn]:
        kind = pa.list_(pa.float64())
        return {name: SampledColumn.of_numbers(x) for name, x in self.numbers.items()} | {
            name: SampledColumn(by_row, kind) for name, by_row in self.lists.items()
        }


def _padded(lists: Sequence[Sequence[float] | None], trace: Trace) -> Float[Tensor, "B T"]:
    values = torch.full(trace.mask.shape, torch.nan, dtype=torch.float64)
    for row, numbers in zip(values, lists, strict=True):
        if numbers is not None:
            row[: len(numbers)] = torch.tensor(numbers, dtype=torch.float64)
    return values.to(trace.mask.device)


def ascending(values: Float[Tensor, "*b T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "*b T"]:
    """Sort each text's values, the smallest first; padding stays last."""
    return values.masked_fill(~mask, torch.inf).sort(-1).values.masked_fill(~mask, 0.0)


def tau_of_map(
    left_values: Float[Tensor, "B T"], right_values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, " B"]:
    """Return tau-b per text; NaN where undefined."""
    defined = right_values.masked_fill(~mask, 0.0).isfinite().all(-1) & left_values.isfinite().all(
        -1
    )
    tau = tau_against(
        levelled(left_values, mask).unsqueeze(1).cpu(),
        right_values.nan_to_num().unsqueeze(1).cpu(),
        mask.cpu(),
    )[:, 0, 0]
    return tau.masked_fill(~defined.cpu(), torch.nan)


def share_under(
    heat: Float[Tensor, "*S B T"], values: Float[Tensor, "*S B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "*S B"]:
    """Return Σ α m / Σ m; NaN where no token has any importance, or one is undefined."""
    token_values = values.double().masked_fill(~mask, 0.0)
    return (heat.double() * token_values).sum(-1) / token_values.sum(-1)


def _mass_against(
    heat: Float[Tensor, "S B T"], signed: Float[Tensor, "S B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "S B"]:
    """Return the share of the mass on tokens without which the answer is likelier; NaN of a single token."""
    undefined = (signed.isnan() & mask).any(-1)
    mass = (heat.double() * (signed < 0) * mask).sum(-1) / heat.double().sum(-1)
    return mass.masked_fill(undefined, torch.nan)


def _heat_maps(row: Row) -> list[HeatMap]:
    """Return the maps of the other trainings; a text that was not sampled has none."""
    prefix = "attention_"
    return [
        HeatMap(
            f"attention, {name.removeprefix(prefix).replace('_', ' ')}",
            "attention",
            weights,
        )
        for name, weights in row["baselines"].items()
        if name.startswith(prefix) and weights is not None
    ]


def _cost(probe: CostProbe) -> float:
    """Return seconds: gradients, integrated gradients and leave-one-out once more for some texts."""
    count = min(TEXTS, probe.context.settings.integrated_gradients_instances)
    gradients = probe.reading(BACKWARD * (SHUFFLES + 2), count)
    # Leave-one-out of the shuffled model, and once under all weightings drawn.
    passes = 2 * leave_one_out_seconds(probe) + integrated_seconds(probe)
    return gradients + probe.sampled(count) * passes


EXPERIMENT = Experiment(
    "baselines",
    baselines,
    columns=COLUMNS,
    needs=("reading", "gradients"),
    place=45,
    heat_maps=_heat_maps,
    cost=_cost,
)
