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

from heedmap.counterfactual.row_weights import dirichlet, permuted
from heedmap.data.batches import Batch
from heedmap.data.texts import Text
from heedmap.experiments.agreement import MEASURES
from heedmap.experiments.cost import BACKWARD, Speed
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.findings import Finding
from heedmap.experiments.importance import GRADIENT_SHARE, change_without
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results
from heedmap.files.tables import table
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each, logits_without_each_under
from heedmap.kendall import tau_against
from heedmap.measures import levelled
from heedmap.models.layered import Layered
from heedmap.models.trace import Model, Trace

FOUND = {
    "leave_one_out": "leave-one-out",
    "gradient": "the gradient",
    "integrated_gradients": "integrated gradients",
}
SHUFFLES = 3  # per text; the texts are many
TWINS = 100  # texts that the model with randomised parameters reads
OTHERS = MEASURES[1:]
DRAWN = ("shuffled", "random")


def baselines(evidence: Evidence) -> pa.Table:
    """Return what shuffled, random and best possible weights reach, for the sample of integrated gradients.

    Columns, for each measure of importance M (gradient, leave_one_out, integrated_gradients):

    * `tau_shuffled_M`: mean tau-b of the map with M where the model's weights are shuffled within the text
      (each row within its support) and M is computed again under them. `tau_random_M`: the same for weights
      from a uniform Dirichlet distribution. `tau_twin_M`: for the model with its parameters shuffled within
      each tensor, on at most TWINS texts, without integrated gradients.
    * `tau_largest_M`: the largest tau-b that the ties of map and M allow, reached if both are in one order.
    * `found_M` = Σ_t α_t m_t / Σ_t m_t: the share of the importance that lies under the map, each word
      weighted by the map; `found_shuffled_M` and `found_random_M` as above, and `found_largest_M` where the
      largest weights are on the most important words.

    Null where a text was not sampled or the number is undefined.
    """
    settings, total = evidence.settings, len(evidence.split)
    chosen = evidence.sample("integrated_gradients", settings.integrated_gradients_instances)
    columns = _Columns(total)
    own = {name: evidence.table(name)["importance"] for name in OTHERS}
    for batch in evidence.batches_of(chosen, shares=GRADIENT_SHARE):
        trace = evidence.model.trace(batch)
        rows, mask = batch.rows.tolist(), trace.mask
        for name in OTHERS:
            values = _padded([own[name][row].as_py() for row in rows], trace)
            columns.put(
                rows,
                f"tau_largest_{name}",
                _tau(_sorted(trace.heat, mask), _sorted(values, mask), mask),
            )
            columns.put(rows, f"found_{name}", _found(trace.heat, values, mask))
            columns.put(
                rows,
                f"found_largest_{name}",
                _found(_sorted(trace.heat, mask), _sorted(values, mask), mask),
            )
        texts = [evidence.texts[row] for row in rows]
        for drawn, weightings in _drawn(evidence, trace):
            heat = evidence.model.to_heatmap(trace, weightings)
            for name, values in _importances_under(evidence, batch, trace, texts, weightings):
                some = heat[: len(values)]
                taus = torch.stack([_tau(*each, mask) for each in zip(some, values, strict=True)])
                columns.put(rows, f"tau_{drawn}_{name}", _mean(taus))
                columns.put(rows, f"found_{drawn}_{name}", _mean(_found(some, values, mask)))
    twins = chosen[np.sort(evidence.generator("twin").permutation(len(chosen))[:TWINS])]
    with randomised(evidence.model, evidence.torch_generator("randomised")):
        for batch in evidence.batches_of(twins, shares=GRADIENT_SHARE):
            trace = evidence.model.trace(batch)
            rows = batch.rows.tolist()
            texts = [evidence.texts[row] for row in rows]
            for name, values in _importances_of_twin(evidence, batch, trace, texts):
                columns.put(rows, f"tau_twin_{name}", _tau(trace.heat, values, trace.mask))
    return table({"row": range(total), **columns.arrays()})


@contextmanager
def randomised(model: Model, generator: torch.Generator) -> Iterator[None]:
    """Shuffle the numbers within each parameter of a model; afterwards they are as before."""
    parameters = list(model.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    try:
        with torch.no_grad():
            for parameter in parameters:
                order = torch.randperm(parameter.numel(), generator=generator)
                flat = parameter.flatten()[order.to(parameter.device)]
                parameter.copy_(flat.view_as(parameter))
        yield
    finally:
        with torch.no_grad():
            for parameter, values in zip(parameters, before, strict=True):
                parameter.copy_(values)


def _drawn(evidence: Evidence, trace: Trace) -> Iterator[tuple[str, Float[Tensor, "S B K P"]]]:
    """Yield the weights that are imposed instead of the model's."""
    rngs = evidence.generators("baselines", trace.rows)
    shuffles = permuted(trace.attention, trace.support, SHUFFLES, rngs)
    yield "shuffled", torch.cat(list(shuffles))
    yield "random", dirichlet(trace.attention, trace.support, rngs).unsqueeze(0)


def _importances_under(
    evidence: Evidence,
    batch: Batch,
    trace: Trace,
    texts: Sequence[Text],
    weightings: Float[Tensor, "S B K P"],
) -> Iterator[tuple[str, Float[Tensor, "some B T"]]]:
    """Yield the importance under each weighting; integrated gradients, which are slow, under the first only."""
    model, settings = evidence.model, evidence.settings
    logits = model.predict(trace, weightings)
    traces = [
        replace(trace, attention=weights, logits=under)
        for weights, under in zip(weightings, logits, strict=True)
    ]
    form = settings.gradient_form
    yield (
        "gradient",
        torch.stack(
            [
                gradient_importance(model, batch, each, of=settings.gradient_of, form=form)
                for each in traces
            ]
        ),
    )
    without = logits_without_each_under(
        model, batch, trace, texts, weightings, settings.leave_one_out
    ).to(logits)
    yield (
        "leave_one_out",
        torch.stack(
            [change_without(*each, model.precision) for each in zip(logits, without, strict=True)]
        ),
    )
    steps = settings.integrated_gradients_steps
    values, _ = integrated_gradients(model, batch, traces[0], steps, traces[0].attention)
    yield "integrated_gradients", values.unsqueeze(0)


def _importances_of_twin(
    evidence: Evidence, batch: Batch, trace: Trace, texts: Sequence[Text]
) -> Iterator[tuple[str, Float[Tensor, "B T"]]]:
    model, settings = evidence.model, evidence.settings
    yield (
        "gradient",
        gradient_importance(
            model,
            batch,
            trace,
            path=settings.gradient_path,
            of=settings.gradient_of,
            form=settings.gradient_form,
        ),
    )
    without = logits_without_each(model, batch, texts, settings.leave_one_out).to(trace.logits)
    yield "leave_one_out", change_without(trace.logits, without, model.precision)


class _Columns:
    """Numbers per text by column, NaN where there is none."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.columns: dict[str, np.ndarray] = {}

    def put(self, rows: Sequence[int], name: str, values: Float[Tensor, " B"]) -> None:
        column = self.columns.setdefault(name, np.full(self.total, np.nan))
        column[list(rows)] = values.double().numpy(force=True)

    def arrays(self) -> dict[str, pa.Array]:
        return {
            name: pa.array(values, pa.float64(), from_pandas=True)
            for name, values in self.columns.items()
        }


def _padded(lists: Sequence[Sequence[float] | None], trace: Trace) -> Float[Tensor, "B T"]:
    values = torch.full(trace.mask.shape, torch.nan, dtype=torch.float64)
    for row, some in zip(values, lists, strict=True):
        if some is not None:
            row[: len(some)] = torch.tensor(some, dtype=torch.float64)
    return values.to(trace.mask.device)


def _sorted(values: Float[Tensor, "*b T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "*b T"]:
    """Sort each text's values, the smallest first; padding stays last."""
    return values.masked_fill(~mask, torch.inf).sort(-1).values.masked_fill(~mask, 0.0)


def _tau(
    first: Float[Tensor, "B T"], second: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, " B"]:
    """Return tau-b per text; NaN where undefined."""
    defined = second.masked_fill(~mask, 0.0).isfinite().all(-1) & first.isfinite().all(-1)
    tau = tau_against(
        levelled(first, mask).unsqueeze(1).cpu(), second.nan_to_num().unsqueeze(1).cpu(), mask.cpu()
    )[:, 0, 0]
    return tau.masked_fill(~defined.cpu(), torch.nan)


def _found(
    heat: Float[Tensor, "*S B T"], values: Float[Tensor, "*S B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "*S B"]:
    """Return Σ α m / Σ m; NaN where no token has any importance, or one is undefined."""
    inside = values.double().masked_fill(~mask, 0.0)
    return (heat.double() * inside).sum(-1) / inside.sum(-1)


def _mean(values: Float[Tensor, "S B"]) -> Float[Tensor, " B"]:
    """Return the mean of the defined values."""
    return values.nanmean(0)


def _cost(speed: Speed) -> float:
    """Return seconds: gradients, integrated gradients and leave-one-out once more for some texts."""
    settings, evidence = speed.evidence.settings, speed.evidence
    most = settings.integrated_gradients_instances
    gradients = BACKWARD * (SHUFFLES + 2 + 2 * settings.integrated_gradients_steps)
    seconds = speed.reading(gradients, most)
    words = np.array([len(text) for text in evidence.texts])
    again = 1 + TWINS / max(TWINS, min(most, len(words)))
    share = speed.sampled(most)
    if isinstance(evidence.model, Layered):
        seconds += share * float((words * evidence.lengths).sum()) * speed.second * again
    return seconds


def _findings(results: Results) -> list[Finding]:
    return [_importance_found(results, measure, name) for measure, name in FOUND.items()]


def _importance_found(results: Results, measure: str, name: str) -> Finding:
    """How much of the importance lies under the map."""
    column = f"found_{measure}"
    # Of one token all importance lies under the map, whatever it is.
    values = np.where(results.short, np.nan, results.column("baselines", column))
    missing = results.tables["integrated_gradients"]["importance"].is_null().to_numpy()
    return results.finding(
        column,
        "found",
        values,
        {"not sampled for the baselines": missing, **results.undefined(measure)},
        question=f"Do the words that the map highlights carry the importance, by {name}?",
        measure=f"mean share of the importance ({name}) that lies under the map's weights",
        clause=f"the importance by {name} that its highlighted words carry",
        meaning="each word counts as much as the map weights it; 1 = all weight on the only word that matters",
        # Shuffled weights find 1/n of what the model's own weights leave for importance. The share found where
        # importance is computed again under shuffled weights is no chance level: it can be above any map's.
        chance=1 / results.column("instances", "n_tokens"),
        ceiling=results.optional("baselines", f"found_largest_{measure}"),
    )


EXPERIMENTS = (Experiment("baselines", baselines, place=45, cost=_cost, findings=_findings),)
