"""How different can the attention be while the prediction stays? (Jain & Wallace 2019, experiment 2b)"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.counterfactual import exact
from heedmap.counterfactual.bounds import Bounds, bound_adversary
from heedmap.counterfactual.constrained import Found, search
from heedmap.counterfactual.descent import best_of, descend
from heedmap.counterfactual.search import best_feasible, search_adversaries
from heedmap.counterfactual.tolerance import canonical_order
from heedmap.data.batches import scatter_rows
from heedmap.experiments import adversary_weights
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.readout import is_linear, linear
from heedmap.importance.effective import same_prediction_dimension
from heedmap.models.layered import Layered
from heedmap.models.trace import Model, Trace
from heedmap.settings import PLAIN, SLOW, AuditSettings
from heedmap.tables import ragged, table

SEARCH_SHARE = 4  # restarts and the graph through the layers above
MOST_CLASSES = 64  # that are enclosed pair by pair: of a thousand there are half a million pairs


def adversary(evidence: Evidence) -> pa.Table:
    """The largest Jensen-Shannon divergence from the model's own weights at (almost) the same prediction.

    Same: a total variation distance of at most ε. Two classes: the global optimum, `jsd` = `jsd_upper`,
    and `attention` attains it. More classes: `jsd` is attained by `attention`, and no weighting exceeds
    `jsd_upper`. `curve_lower` and `curve_upper` enclose the same for every ε of the settings' curve, of
    more than two classes more loosely than at ε itself. `search_jsd` is what the paper's gradient search
    finds (5 adversaries, 500 steps, last iterate), 0 where it finds nothing (`search_found` is false); of
    more than two classes `jsd` begins from that, among others, and is no less. `jsd` does not change with
    the order of the tokens. `dimension` is that of the polytope of weightings with exactly the same
    prediction, for weights inside the simplex: n − 2 for two classes.

    Where the read-out is not linear, or there are more than 64 classes, a search on the model itself takes
    the place of all that: the divergence is that of the heat map, `jsd` the largest met at a prediction
    within ε (`tvd`), of a sample of the texts, and `jsd_upper` what no heat map of the text exceeds.
    `on_text`: the share of the adversary's mass that is on words at all (`on_text_before`: of the model's
    own). The paper's search is run too where there is one row of weights and the settings give it steps.
    """
    first = next(evidence.traces, None)
    found = _exact(evidence) if first is None or is_enclosed(first) else _searched(evidence)
    instances = evidence.table("instances")
    return table(
        {
            "row": range(len(evidence.split)),
            **{name: instances[name] for name in ("predicted", "n_tokens", "max_attention")},
            **found,
        }
    )


def is_enclosed(trace: Trace) -> bool:
    """Whether the optimum is computed, or bounds of it; else it is searched for."""
    return is_linear(trace) and trace.logits.shape[-1] <= MOST_CLASSES


def _exact(evidence: Evidence) -> dict[str, object]:
    settings = evidence.settings
    epsilons = sorted({*settings.curve, settings.epsilon})
    at = epsilons.index(settings.epsilon)
    drawn = [epsilons.index(epsilon) for epsilon in settings.curve]
    generator = evidence.torch_generator("adversary")
    traces = list(evidence.traces)
    orders = [_order(trace) for trace in traces]
    sorted_traces = list(map(_reordered, traces, orders))
    candidates = [_candidates(trace, generator) for trace in sorted_traces]
    bounds = [
        _along(trace, epsilons, some, settings.epsilon)
        for trace, some in zip(sorted_traces, candidates, strict=True)
    ]
    found = [curve[at] for curve in bounds]
    curves = [[curve[i] for i in drawn] for curve in bounds]
    searched = [
        best_feasible(some, *_problem(trace), settings.epsilon)
        for trace, some in zip(sorted_traces, candidates, strict=True)
    ]
    rows = [trace.rows for trace in traces]
    lower = scatter_rows(rows, [torch.stack([b.lower for b in c], dim=1) for c in curves])
    upper = scatter_rows(rows, [torch.stack([b.upper for b in c], dim=1) for c in curves])
    return {
        "jsd": scatter_rows(rows, [bounds.lower for bounds in found]),
        "jsd_upper": scatter_rows(rows, [bounds.upper for bounds in found]),
        "search_jsd": scatter_rows(rows, [jsd for jsd, _, _ in searched]),
        "search_found": scatter_rows(rows, [hit for _, hit, _ in searched]),
        "curve_lower": pa.array(list(lower.numpy(force=True))),
        "curve_upper": pa.array(list(upper.numpy(force=True))),
        "attention": ragged(
            rows,
            [
                torch.zeros_like(b.attention).scatter(1, order, b.attention)
                for b, order in zip(found, orders, strict=True)
            ],
            [trace.mask for trace in traces],
        ),
        "dimension": scatter_rows(rows, [_dimension(trace) for trace in traces]),
    }


def _dimension(trace: Trace) -> Int[Tensor, " B"]:
    _, relevance, _ = linear(trace)
    return same_prediction_dimension(relevance, trace.mask)


def _searched(evidence: Evidence) -> dict[str, object]:
    """The best feasible heat map that the search meets, of a seeded sample; null for the other texts."""
    settings, total = evidence.settings, len(evidence.split)
    generator = evidence.torch_generator("adversary")
    jsd: list[float | None] = [None] * total
    upper, tvd, before, after, descent = (list(jsd) for _ in range(5))
    hits: list[bool | None] = [None] * total
    heat: list[object] = [None] * total
    model, slow = evidence.model, False
    if isinstance(model, Layered):
        slow = model.shown_map().view in SLOW
    chosen = evidence.sample("adversary", 0 if slow else settings.search_instances)
    kept: dict[int, Tensor] = {}
    room = adversary_weights.MOST
    for batch in evidence.batches_of(chosen, shares=SEARCH_SHARE):
        trace = model.trace(batch)
        own_draws = evidence.torch_generators("adversary", batch.rows)
        best = most_different_met(model, trace, settings, own_draws)
        shown = model.shown(trace, best.attention.unsqueeze(0)).squeeze(0).detach()
        alone = model.unpadded(trace, best.attention) if isinstance(model, Layered) else []
        own, found = (_on_text(trace, weights) for weights in (trace.attention, best.attention))
        for i, row in enumerate(batch.rows.tolist()):
            jsd[row], upper[row] = float(best.jsd[i]), float(best.upper[i])
            tvd[row] = float(best.tvd[i])
            before[row], after[row] = own[i], found[i]
            heat[row] = shown[i][trace.mask[i]].double().numpy(force=True)
            # Batches come with the shortest texts first: of more than there is room for, these are kept.
            room -= 4 * alone[i].numel() if alone else 0
            if alone and room >= 0:
                kept[row] = alone[i].cpu()
        if settings.descent_steps and trace.attention.shape[1] == 1:
            for row, of_search, hit in zip(
                batch.rows.tolist(), *_descent(evidence, trace, generator), strict=True
            ):
                descent[row], hits[row] = float(of_search), bool(hit)
    if isinstance(model, Layered):
        evidence.keep(adversary_weights.FILE, adversary_weights.pack(kept))
    papers = {
        "search_jsd": pa.array(descent, pa.float64()),
        "search_found": pa.array(hits, pa.bool_()),
    }
    return {
        "jsd": pa.array(jsd, pa.float64()),
        "jsd_upper": pa.array(upper, pa.float64()),
        "tvd": pa.array(tvd, pa.float64()),
        "on_text_before": pa.array(before, pa.float64()),
        "on_text": pa.array(after, pa.float64()),
        "attention": pa.array(heat, pa.list_(pa.float64())),
        **(papers if any(hit is not None for hit in hits) else {}),
    }


def _descent(
    evidence: Evidence, trace: Trace, generator: torch.Generator
) -> tuple[Float[Tensor, " B"], Tensor]:
    """What the paper's own search finds: its last iterates, judged at ε."""
    predict, settings = partial(evidence.model.predict, trace), evidence.settings
    weights = trace.attention[:, 0]
    candidates = descend(
        predict, weights, trace.mask, steps=settings.descent_steps, generator=generator
    )
    return best_of(predict, candidates, weights, trace.mask, settings.epsilon)


def most_different_met(
    model: Model, trace: Trace, settings: AuditSettings, generators: Sequence[torch.Generator]
) -> Found:
    """What the constrained search finds on the model itself, with the audit's ε, restarts and steps.

    One generator a text. A heat map that is made of the weights (gradient × attention, say) is uneven ground:
    its search begins from what one for the weights themselves finds, and so finds no less.
    """
    find = partial(
        search,
        partial(model.predict, trace),
        attention=trace.attention,
        support=trace.support,
        mask=trace.mask,
        logits=trace.logits,
        epsilon=settings.epsilon,
        restarts=settings.search_restarts,
        steps=settings.search_steps,
        generators=generators,
    )
    shown = partial(model.shown, trace)
    if not isinstance(model, Layered) or model.shown_map().view in PLAIN:
        return find(shown)
    begin = find(partial(model.plain, trace)).attention
    return find(shown, reach=model.reach(trace), begin=begin)


def _on_text(trace: Trace, attention: Float[Tensor, "B K P"]) -> list[float]:
    """Share of the rows' mass that lies on the text's tokens, which is all that a heat map shows."""
    mass = attention.mean(1)
    text = torch.ones_like(mass, dtype=torch.bool) if trace.of_text is None else trace.of_text
    shares: list[float] = ((mass * text).sum(-1) / mass.sum(-1).clamp(min=1e-9)).tolist()
    return shares


def _order(trace: Trace) -> Int[Tensor, "B T"]:
    """The order in which positions are looked at: their own, unless what is found may depend on it."""
    assert trace.readout is not None
    relevance = trace.readout.relevance[:, 0]
    if relevance.shape[-1] == 2:  # an exact optimum, and the paper's search as it always was
        return torch.arange(trace.mask.shape[1], device=trace.mask.device).expand(trace.mask.shape)
    return canonical_order(trace.attention[:, 0], relevance, trace.mask)


def _reordered(trace: Trace, order: Int[Tensor, "B T"]) -> Trace:
    """The trace with its positions in another order, as far as the closed forms look at it."""
    assert trace.readout is not None
    relevance = trace.readout.relevance
    rows = order.unsqueeze(1)
    each = rows.unsqueeze(-1).expand(relevance.shape)
    return replace(
        trace,
        mask=trace.mask.gather(1, order),
        attention=trace.attention.gather(2, rows),
        readout=replace(trace.readout, relevance=relevance.gather(2, each)),
    )


def _along(
    trace: Trace, epsilons: list[float], candidates: Float[Tensor, "K B T"], searched: float
) -> list[Bounds]:
    """Bounds for growing ε, with a constrained search at `searched` alone, for it takes most of the time.

    What is feasible for a smaller ε is so for a larger one: the lower bound never falls along the curve, and
    no upper bound exceeds a later one.
    """
    found = most_different(trace, searched, candidates, searching=True)
    curve: list[Bounds] = []
    for epsilon in epsilons:
        if epsilon == searched:
            curve.append(found)
            continue
        starts = [found.attention, *([curve[-1].attention] if curve else [])]
        curve.append(most_different(trace, epsilon, candidates, starts))
    for i in range(1, len(curve)):
        before, here = curve[i - 1], curve[i]
        kept = before.lower > here.lower
        attention = torch.where(kept.unsqueeze(1), before.attention, here.attention)
        curve[i] = Bounds(torch.maximum(before.lower, here.lower), here.upper, attention)
    for i in reversed(range(len(curve) - 1)):
        upper = torch.minimum(curve[i].upper, curve[i + 1].upper)
        curve[i] = Bounds(curve[i].lower, upper, curve[i].attention)
    return curve


def most_different(
    trace: Trace,
    epsilon: float,
    candidates: Float[Tensor, "K B T"],
    starts: Sequence[Float[Tensor, "B T"]] = (),
    *,
    searching: bool = False,
) -> Bounds:
    """The exact optimum for two classes, bounds for more.

    `candidates` are what the paper's search ends with, `starts` what was found for other ε; `searching`: by a
    constrained search too.
    """
    problem = weights, relevance, _, _ = _problem(trace)
    if relevance.shape[-1] > 2:
        of_search = best_feasible(candidates, *problem, epsilon)[2]
        return bound_adversary(*problem, epsilon, starts=[of_search, *starts], searching=searching)
    optimum = exact.adversary(*problem, epsilon)
    return Bounds(optimum.jsd, optimum.jsd, optimum.dense(weights.shape[1]))


def _problem(trace: Trace) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the closed forms ask for: weights, relevance, bias and mask."""
    return (*linear(trace), trace.mask)


def _candidates(trace: Trace, generator: torch.Generator) -> Float[Tensor, "K B T"]:
    """What the paper's search ends with, in single precision as there."""
    weights, relevance, bias = linear(trace)
    found = search_adversaries(
        weights.float(), relevance.float(), bias.float(), trace.mask, generator=generator
    ).double()
    if relevance.shape[-1] == 2:
        return found
    return found / found.sum(-1, keepdim=True)  # `jsd` is no less: it must be judged alike
