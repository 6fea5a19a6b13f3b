"""The adversary's columns where the read-out is not linear: a constrained search on the model itself."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.constrained import SearchResult, search
from heedmap.counterfactual.jain_wallace_autograd import best_of, descend
from heedmap.counterfactual.linearised_problem import Predict
from heedmap.counterfactual.number_tolerance import WITHIN, as_two_classes, change_of_number
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods import adversary_weights
from heedmap.experiments.scales import scale_of
from heedmap.models.layered import Layered
from heedmap.models.trace import Model, Trace
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import PLAIN, SLOW

SEARCH_SHARE = 4  # memory for restarts and the graph through the layers above


def search_all(context: AuditContext) -> dict[str, object]:
    """Return the best feasible heat map found for a seeded sample of the texts; null for the others.

    A number counts as the same within ε standard deviations of all outputs; without any no text is asked.
    """
    settings, total = context.settings, len(context.split)
    generator = context.torch_generator("adversary")
    jsd: list[float | None] = [None] * total
    upper, tvd, text_share, adversary_text_share, descent = (list(jsd) for _ in range(5))
    hits: list[bool | None] = [None] * total
    heat: list[object] = [None] * total
    model, slow = context.model, False
    if isinstance(model, Layered):
        slow = model.map_on_trial().view in SLOW
    size = scale_of(context.table("instances"), model.classes).size
    count = 0 if slow or math.isnan(size) else settings.search_instances
    sample = context.sample("adversary", count)
    weights_by_row: dict[int, Tensor] = {}
    bytes_left = adversary_weights.MOST
    for batch in context.batches_of(sample, shares=SEARCH_SHARE):
        trace = model.trace(batch)
        own_draws = context.torch_generators("adversary", batch.rows)
        descended = None
        is_paper_s = trace.attention.shape[1] == 1 and trace.logits.shape[-1] > 1
        if settings.descent_steps and is_paper_s:
            descended, search_jsd, hit = _descent(context, trace, generator)
        best = most_different_met(
            model, trace, settings, own_draws, candidates=descended, size=size
        )
        heatmap = model.to_heatmap(trace, best.attention.unsqueeze(0)).squeeze(0).detach()
        unpadded = model.unpadded(trace, best.attention) if isinstance(model, Layered) else []
        map_text_share, found_text_share = (
            _on_text(trace, weights) for weights in (trace.attention, best.attention)
        )
        for i, row in enumerate(batch.rows.tolist()):
            jsd[row], upper[row] = float(best.jsd[i]), float(best.upper[i])
            tvd[row] = float(best.tvd[i])
            text_share[row], adversary_text_share[row] = map_text_share[i], found_text_share[i]
            heat[row] = heatmap[i][trace.mask[i]].double().numpy(force=True)
            # Batches come with the shortest texts first; these are kept when the space runs out.
            bytes_left -= 4 * unpadded[i].numel() if unpadded else 0
            if unpadded and bytes_left >= 0:
                weights_by_row[row] = unpadded[i].cpu()
            if descended is not None:
                descent[row], hits[row] = float(search_jsd[i]), bool(hit[i])
    if isinstance(model, Layered):
        context.keep(adversary_weights.FILE, adversary_weights.pack(weights_by_row))
    papers = {
        "search_jsd": pa.array(descent, pa.float64()),
        "search_found": pa.array(hits, pa.bool_()),
    }
    return {
        "jsd": pa.array(jsd, pa.float64()),
        "jsd_upper": pa.array(upper, pa.float64()),
        "tvd": pa.array(tvd, pa.float64()),
        "on_text_before": pa.array(text_share, pa.float64()),
        "on_text": pa.array(adversary_text_share, pa.float64()),
        "attention": pa.array(heat, pa.list_(pa.float64())),
        **(papers if any(hit is not None for hit in hits) else {}),
    }


def _descent(
    context: AuditContext, trace: Trace, generator: torch.Generator
) -> tuple[Float[Tensor, "S B 1 T"], Float[Tensor, " B"], Bool[Tensor, " B"]]:
    """Run the paper's search: its last iterates, the JSD of the best within ε, and whether there is one."""
    predict, settings = partial(context.model.predict, trace), context.settings
    weights = trace.attention[:, 0]
    candidates = descend(
        predict, weights, trace.mask, steps=settings.descent_steps, generator=generator
    )
    jsd, hit = best_of(predict, candidates, weights, trace.mask, settings.epsilon)
    return candidates.unsqueeze(2), jsd, hit


def most_different_met(
    model: Model,
    trace: Trace,
    settings: AuditSettings,
    generators: Sequence[torch.Generator],
    candidates: Float[Tensor, "N B K P"] | None = None,
    size: float = 1.0,
) -> SearchResult:
    """Run the constrained search on the model itself, with the audit's ε, restarts and steps.

    One generator per text. The result is as different as any of the `candidates` that predict the same. A
    heat map derived from the weights (gradient × attention, say) is hard to search: that search starts from
    the result of one for the weights themselves, and so does at least as well. `size` is one unit of ε in that
    of the model: 1 of classes, a standard deviation of the outputs of a model that gives a number. There `tvd`
    of the result is the change of the output.
    """
    predict: Predict = partial(model.predict, trace)
    logits, epsilon = trace.logits, settings.epsilon
    tolerance, is_number = epsilon * size, logits.shape[-1] == 1
    if is_number:
        epsilon, logits = WITHIN, as_two_classes(trace.logits, trace.logits, tolerance)

        def of_two_classes(attention: Tensor) -> Tensor:
            return as_two_classes(model.predict(trace, attention), trace.logits, tolerance)

        predict = of_two_classes
    find = partial(
        search,
        predict,
        attention=trace.attention,
        support=trace.support,
        mask=trace.mask,
        logits=logits,
        epsilon=epsilon,
        restarts=settings.search_restarts,
        steps=settings.search_steps,
        generators=generators,
        candidates=candidates,
    )
    to_heatmap = partial(model.to_heatmap, trace)
    if not isinstance(model, Layered) or model.map_on_trial().view in PLAIN:
        result = find(to_heatmap)
    else:
        begin = find(partial(model.plain, trace)).attention
        result = find(to_heatmap, reach=model.reach(trace), begin=begin)
    return replace(result, tvd=change_of_number(result.tvd, tolerance)) if is_number else result


def _on_text(trace: Trace, attention: Float[Tensor, "B K P"]) -> list[float]:
    """Return the share of the rows' mass on the text's tokens, the only ones that a heat map shows."""
    mass = attention.mean(1)
    text = (
        torch.ones_like(mass, dtype=torch.bool)
        if trace.token_positions is None
        else trace.token_positions
    )
    shares: list[float] = ((mass * text).sum(-1) / mass.sum(-1).clamp(min=1e-9)).tolist()
    return shares
