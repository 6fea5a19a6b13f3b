"""What an audit will cost, measured on a batch or a text before it begins."""

import time
from dataclasses import replace

import numpy as np

from heedmap.counterfactual import exact
from heedmap.counterfactual.rows import uniform
from heedmap.counterfactual.tangent import GROUPS
from heedmap.data.texts import Pair, Text
from heedmap.experiments.adversary import is_enclosed
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.importance import GRADIENT_SHARE
from heedmap.experiments.readout import linear
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.models.layered import Layered
from heedmap.models.trace import Trace
from heedmap.settings import PLAIN, SLOW

BACKWARD = 3.0  # a pass with its gradient, in passes
SCAN = 6.0  # all maps of a text, in passes
PROBE = 4096  # positions of the measured batch
PROBED = 256  # tokens of a measured text
ADVERSARIES = 5  # of the paper's search
CLIMBS = 700  # what the bounds' lower side takes, in optima for two classes


def estimate(evidence: Evidence) -> dict[str, float]:
    """Seconds an experiment that is not done yet will take, roughly, from the speed of one batch.

    Counts positions read: leave-one-out reads a text once a word, permutation and the search recompute
    what lies above the weights P times and (restarts × steps) times. What our own models have shortcuts for
    is measured itself, on a part (`_shortcuts`).
    """
    model, settings, lengths = evidence.model, evidence.settings, evidence.lengths
    if not len(lengths):
        return {}
    typical = np.argsort(lengths, kind="stable")[len(lengths) // 2 :]
    rows = typical[: max(1, PROBE // int(lengths[typical[0]]))]
    batch = model.batch([evidence.texts[i] for i in rows], rows.tolist())
    model.logits(batch)  # the first pass also warms up
    start = time.perf_counter()
    model.logits(batch)
    second = (time.perf_counter() - start) / float(lengths[rows].sum())
    trace = model.trace(batch)
    even = uniform(trace.attention, trace.support).unsqueeze(0)
    start = time.perf_counter()
    model.predict(trace, even)
    again = (time.perf_counter() - start) / len(rows)

    words = np.array([len(text) for text in evidence.texts])
    total = float(lengths.sum())
    texts = evidence.split.whole_texts
    searched = min(texts, settings.search_instances) / texts
    integrated = min(texts, settings.integrated_gradients_instances) / texts
    scanned = min(texts, settings.scan_instances) / texts
    rows_searched = searched * len(lengths) * settings.search_restarts * settings.search_steps
    view = model.shown_map().view if isinstance(model, Layered) else PLAIN[0]
    if view in SLOW:
        rows_searched = 0
    elif view not in PLAIN:
        rows_searched *= 2  # a search for the weights, then one for the map that is made of them
    found = {
        "leave_one_out": float((words * lengths).sum()) * second,
        "gradient": total * second * BACKWARD,
        "integrated_gradients": (
            total * integrated * second * BACKWARD * settings.integrated_gradients_steps
        ),
        "permutation": len(lengths) * settings.permutations * again,
        "adversary": rows_searched * again * BACKWARD,
        "scan": total * scanned * second * SCAN,
        "heads": total * scanned * second * GRADIENT_SHARE,
    }
    if not isinstance(model, Layered):
        found = {name: cost for name, cost in found.items() if name not in ("scan", "heads")}
        found |= _shortcuts(evidence, trace, again)
    return {name: cost for name, cost in found.items() if not evidence.done(name)}


def _shortcuts(evidence: Evidence, trace: Trace, again: float) -> dict[str, float]:
    """Of our own models: leave-one-out grows with the square of a text's length; the adversary's bounds with
    the pairs of classes, and the search for it with its steps.
    """
    model, settings, lengths = evidence.model, evidence.settings, evidence.lengths
    typical = np.argsort(lengths, kind="stable")[len(lengths) // 2 :]
    some = typical[: max(1, PROBED // int(lengths[typical[0]])) ** 2]
    texts = [_cut(evidence.texts[i]) for i in some]
    batch = model.batch(texts, some.tolist())
    start = time.perf_counter()
    logits_without_each(model, batch, texts, settings.leave_one_out)
    squares = float((lengths.astype(float) ** 2).sum()) / sum(len(text) ** 2 for text in texts)
    found = {"leave_one_out": (time.perf_counter() - start) * squares}
    searched = min(len(lengths), settings.search_instances)
    classes = trace.logits.shape[-1]
    if not is_enclosed(trace):
        per_step = settings.search_restarts * settings.search_steps * min(classes, GROUPS)
        steps = per_step + ADVERSARIES * settings.descent_steps
        return {**found, "adversary": searched * steps * again * BACKWARD}
    pairs, per_text = classes * (classes - 1) / 2, len(lengths) / len(trace.rows)
    start = time.perf_counter()
    weights, relevance, bias = linear(trace)
    exact.adversary(weights, relevance[..., :2], bias[:2], trace.mask, settings.epsilon)
    enclosing = (time.perf_counter() - start) * (pairs + CLIMBS * (classes > 2))
    descending = ADVERSARIES * settings.descent_steps * again * len(trace.rows)
    return {
        **found,
        "adversary": per_text * (enclosing * len({*settings.curve, settings.epsilon}) + descending),
    }


def _cut(text: Text) -> Text:
    return replace(text, tokens=text[:PROBED]) if isinstance(text, Pair) else text[:PROBED]


def told(costs: dict[str, float]) -> str | None:
    """`about 3 minutes (leave-one-out 70 %, permutation 20 %)`; None where nothing is left to do."""
    total = sum(costs.values())
    if total <= 0:
        return None
    largest = sorted(costs.items(), key=lambda item: -item[1])[:3]
    parts = ", ".join(f"{name.replace('_', ' ')} {cost / total:.0%}" for name, cost in largest)
    length = f"{total:.0f} seconds" if total < 90 else f"{total / 60:.0f} minutes"
    return f"about {length} ({parts})"
