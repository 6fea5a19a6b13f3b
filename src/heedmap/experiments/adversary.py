"""How different can the attention be while the prediction stays? (Jain & Wallace 2019, experiment 2b)"""

import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.counterfactual import exact
from heedmap.counterfactual.bounds import Bounds, bound_adversary
from heedmap.counterfactual.search import best_feasible, search_adversaries
from heedmap.data.batches import scatter_rows
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.readout import linear
from heedmap.models.trace import Trace
from heedmap.tables import ragged, table


def adversary(evidence: Evidence) -> pa.Table:
    """The largest Jensen-Shannon divergence from the model's own weights at (almost) the same prediction.

    Same: a total variation distance of at most ε. Two classes: the global optimum, `jsd` = `jsd_upper`,
    and `attention` attains it. More classes: `jsd` is attained by `attention`, and no weighting exceeds
    `jsd_upper`. `curve_lower` and `curve_upper` are the same for every ε of the settings' curve.
    `search_jsd` is what the paper's gradient search finds (5 adversaries, 500 steps, last iterate), 0 where
    it finds nothing (`search_found` is false).
    """
    settings = evidence.settings
    generator = torch.Generator().manual_seed(int(evidence.generator("adversary").integers(2**62)))
    epsilons = sorted({*settings.curve, settings.epsilon})
    at = epsilons.index(settings.epsilon)
    drawn = [epsilons.index(epsilon) for epsilon in settings.curve]
    bounds = [_along(trace, epsilons) for trace in evidence.traces]
    found = [curve[at] for curve in bounds]
    curves = [[curve[i] for i in drawn] for curve in bounds]
    searched = [_search(trace, settings.epsilon, generator) for trace in evidence.traces]
    rows = [trace.rows for trace in evidence.traces]
    lower = scatter_rows(rows, [torch.stack([b.lower for b in c], dim=1) for c in curves])
    upper = scatter_rows(rows, [torch.stack([b.upper for b in c], dim=1) for c in curves])
    instances = evidence.table("instances")
    return table(
        {
            "row": range(len(evidence.split)),
            "predicted": instances["predicted"],
            "n_tokens": instances["n_tokens"],
            "max_attention": instances["max_attention"],
            "jsd": scatter_rows(rows, [bounds.lower for bounds in found]),
            "jsd_upper": scatter_rows(rows, [bounds.upper for bounds in found]),
            "search_jsd": scatter_rows(rows, [jsd for jsd, _ in searched]),
            "search_found": scatter_rows(rows, [hit for _, hit in searched]),
            "curve_lower": pa.array(list(lower.numpy(force=True))),
            "curve_upper": pa.array(list(upper.numpy(force=True))),
            "attention": ragged(
                rows, [b.attention for b in found], [trace.mask for trace in evidence.traces]
            ),
        }
    )


def _along(trace: Trace, epsilons: list[float]) -> list[Bounds]:
    """Bounds for growing ε. What is feasible for a smaller ε is so for a larger one: the lower bound never
    falls along the curve, and no upper bound exceeds a later one.
    """
    curve = [most_different(trace, epsilon) for epsilon in epsilons]
    for i in range(1, len(curve)):
        before, here = curve[i - 1], curve[i]
        kept = before.lower > here.lower
        attention = torch.where(kept.unsqueeze(1), before.attention, here.attention)
        curve[i] = Bounds(torch.maximum(before.lower, here.lower), here.upper, attention)
    for i in reversed(range(len(curve) - 1)):
        upper = torch.minimum(curve[i].upper, curve[i + 1].upper)
        curve[i] = Bounds(curve[i].lower, upper, curve[i].attention)
    return curve


def most_different(trace: Trace, epsilon: float) -> Bounds:
    """The exact optimum for two classes, bounds for more."""
    weights, relevance, bias = linear(trace)
    if relevance.shape[-1] > 2:
        return bound_adversary(weights, relevance, bias, trace.mask, epsilon)
    optimum = exact.adversary(weights, relevance, bias, trace.mask, epsilon)
    return Bounds(optimum.jsd, optimum.jsd, optimum.dense(weights.shape[1]))


def _search(
    trace: Trace, epsilon: float, generator: torch.Generator
) -> tuple[Float[Tensor, " B"], Tensor]:
    weights, relevance, bias = linear(trace)
    candidates = search_adversaries(
        weights.float(), relevance.float(), bias.float(), trace.mask, generator=generator
    )
    jsd, hit, _ = best_feasible(candidates.double(), weights, relevance, bias, trace.mask, epsilon)
    return jsd, hit
