"""The adversary's columns where the read-out is linear: the optimum for two classes, bounds for more."""

from dataclasses import replace

import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.counterfactual.bounds import Bounds, bound_adversary
from heedmap.counterfactual.exact import number_adversary
from heedmap.counterfactual.jain_wallace_search import best_feasible, search_adversaries
from heedmap.counterfactual.tolerance import canonical_order
from heedmap.data.batches import scatter_rows
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.scales import scale_of
from heedmap.files.tables import ragged
from heedmap.importance.effective import same_prediction_dimension
from heedmap.models.trace import Trace
from heedmap.terminal.progress import portion, track


def enclose(context: AuditContext) -> dict[str, object]:
    """Return the columns of the adversary's table; see `adversary`."""
    if len(context.model.classes) == 1:
        return _of_numbers(context)
    settings = context.settings
    epsilons = sorted({*settings.curve, settings.epsilon})
    epsilon_index = epsilons.index(settings.epsilon)
    curve_indices = [epsilons.index(epsilon) for epsilon in settings.curve]
    generator = context.torch_generator("adversary")
    with portion(0.05):
        traces = list(context.traces)
    orders = [_order(trace) for trace in traces]
    sorted_traces = list(map(_reordered, traces, orders))
    with portion(0.45):
        candidates = [_candidates(trace, generator) for trace in track(sorted_traces)]
    with portion(0.5):
        pairs = track(list(zip(sorted_traces, candidates, strict=True)))
        bounds = [
            _curve(trace, epsilons, weightings, settings.epsilon) for trace, weightings in pairs
        ]
    at_epsilon = [curve[epsilon_index] for curve in bounds]
    curves = [[curve[i] for i in curve_indices] for curve in bounds]
    searched = [
        best_feasible(weightings, *_problem(trace), settings.epsilon)
        for trace, weightings in zip(sorted_traces, candidates, strict=True)
    ]
    rows = [trace.rows for trace in traces]
    lower = scatter_rows(rows, [torch.stack([b.lower for b in c], dim=1) for c in curves])
    upper = scatter_rows(rows, [torch.stack([b.upper for b in c], dim=1) for c in curves])
    return {
        "jsd": scatter_rows(rows, [bounds.lower for bounds in at_epsilon]),
        "jsd_upper": scatter_rows(rows, [bounds.upper for bounds in at_epsilon]),
        "search_jsd": scatter_rows(rows, [jsd for jsd, _, _ in searched]),
        "search_found": scatter_rows(rows, [hit for _, hit, _ in searched]),
        "curve_lower": pa.array(list(lower.numpy(force=True))),
        "curve_upper": pa.array(list(upper.numpy(force=True))),
        "attention": ragged(
            rows,
            [
                torch.zeros_like(b.attention).scatter(1, order, b.attention)
                for b, order in zip(at_epsilon, orders, strict=True)
            ],
            [trace.mask for trace in traces],
        ),
        "dimension": scatter_rows(rows, [_dimension(trace) for trace in traces]),
    }


def _of_numbers(context: AuditContext) -> dict[str, object]:
    """Return the columns where the one output is a number: global optima; NaN where all numbers are the same.

    The paper's search, which is about classes, is not made.
    """
    settings = context.settings
    size = scale_of(context.table("instances"), context.model.classes).size
    traces = list(context.traces)
    optima = [
        [
            number_adversary(*_problem(trace), size * epsilon if size > 0 else 0.0)
            for trace in traces
        ]
        for epsilon in (settings.epsilon, *settings.curve)
    ]
    rows = [trace.rows for trace in traces]
    jsd, *curve = (
        scatter_rows(
            rows, [optimum.jsd if size > 0 else optimum.jsd * torch.nan for optimum in of_epsilon]
        )
        for of_epsilon in optima
    )
    along = (
        pa.array(list(torch.stack(curve, dim=1).numpy(force=True))) if curve else [[]] * len(jsd)
    )
    weights = [
        optimum.dense(trace.mask.shape[1]) for optimum, trace in zip(optima[0], traces, strict=True)
    ]
    return {
        "jsd": jsd,
        "jsd_upper": jsd,
        "curve_lower": along,
        "curve_upper": along,
        "attention": ragged(rows, weights, [trace.mask for trace in traces]),
        "dimension": scatter_rows(rows, [_dimension(trace) for trace in traces]),
    }


def _dimension(trace: Trace) -> Int[Tensor, " B"]:
    _, relevance, _ = linear(trace)
    if relevance.shape[-1] == 1:  # of classes the differences count, of a number it itself
        relevance = torch.cat([torch.zeros_like(relevance), relevance], dim=-1)
    return same_prediction_dimension(relevance, trace.mask)


def _order(trace: Trace) -> Int[Tensor, "B T"]:
    """Return the order in which positions are tried: the text's, unless the result may depend on it."""
    assert trace.readout is not None
    relevance = trace.readout.relevance[:, 0]
    if relevance.shape[-1] == 2:  # an exact optimum, and the paper's search unchanged
        return torch.arange(trace.mask.shape[1], device=trace.mask.device).expand(trace.mask.shape)
    return canonical_order(trace.attention[:, 0], relevance, trace.mask)


def _reordered(trace: Trace, order: Int[Tensor, "B T"]) -> Trace:
    """Reorder the positions of a trace, in the parts that the closed forms read."""
    assert trace.readout is not None
    relevance = trace.readout.relevance
    rows = order.unsqueeze(1)
    token_order = rows.unsqueeze(-1).expand(relevance.shape)
    return replace(
        trace,
        mask=trace.mask.gather(1, order),
        attention=trace.attention.gather(2, rows),
        readout=replace(trace.readout, relevance=relevance.gather(2, token_order)),
    )


def _curve(
    trace: Trace, epsilons: list[float], candidates: Float[Tensor, "S B T"], searched: float
) -> list[Bounds]:
    """Return bounds for growing ε. The slow constrained search runs only at ε = `searched`.

    What is feasible for a smaller ε is feasible for a larger one, so neither bound falls along the curve.
    """
    problem = _problem(trace)

    def bounds(epsilon: float, *starts: Tensor) -> Bounds:
        best = best_feasible(candidates, *problem, epsilon)[2]
        return bound_adversary(
            *problem, epsilon, starts=[best, *starts], searching=epsilon == searched
        )

    at_searched = bounds(searched)
    curve: list[Bounds] = []
    for epsilon in epsilons:
        starts = [curve[-1].attention] if curve else []
        curve.append(
            at_searched if epsilon == searched else bounds(epsilon, at_searched.attention, *starts)
        )
    for i in range(1, len(curve)):
        previous, current = curve[i - 1], curve[i]
        better = previous.lower > current.lower
        attention = torch.where(better.unsqueeze(1), previous.attention, current.attention)
        curve[i] = Bounds(torch.maximum(previous.lower, current.lower), current.upper, attention)
    for i in reversed(range(len(curve) - 1)):
        upper = torch.minimum(curve[i].upper, curve[i + 1].upper)
        curve[i] = Bounds(curve[i].lower, upper, curve[i].attention)
    return curve


def _problem(trace: Trace) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the input of the closed forms: weights, relevance, bias and mask."""
    return (*linear(trace), trace.mask)


def _candidates(trace: Trace, generator: torch.Generator) -> Float[Tensor, "S B T"]:
    """Return the last iterates of the paper's search, in single precision as there."""
    weights, relevance, bias = linear(trace)
    candidates = search_adversaries(
        weights.float(), relevance.float(), bias.float(), trace.mask, generator=generator
    ).double()
    if relevance.shape[-1] == 2:
        return candidates
    # `jsd` starts from these and is no smaller: both must be judged on weights that sum to 1.
    return candidates / candidates.sum(-1, keepdim=True)
