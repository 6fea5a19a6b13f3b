"""What an audit of a transformer will cost, measured on one batch before it begins."""

import time

import numpy as np

from heedmap.counterfactual.rows import uniform
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.importance import GRADIENT_SHARE
from heedmap.models.layered import Layered
from heedmap.settings import PLAIN, SLOW

BACKWARD = 3.0  # a pass with its gradient, in passes
SCAN = 6.0  # all maps of a text, in passes
PROBE = 4096  # positions of the measured batch


def estimate(evidence: Evidence) -> dict[str, float]:
    """Seconds an experiment that is not done yet will take, roughly, from the speed of one batch.

    Counts positions read: leave-one-out reads a text once a word, permutation and the search recompute
    what lies above the weights P times and (restarts × steps) times.
    """
    model, settings, lengths = evidence.model, evidence.settings, evidence.lengths
    if not len(lengths):
        return {}
    typical = np.argsort(lengths, kind="stable")[len(lengths) // 2 :]
    rows = typical[: max(1, PROBE // int(lengths[typical[0]]))]
    batch = model.batch([evidence.split.tokens[i] for i in rows], rows.tolist())
    model.logits(batch)  # the first pass also warms up
    start = time.perf_counter()
    model.logits(batch)
    second = (time.perf_counter() - start) / float(lengths[rows].sum())
    trace = model.trace(batch)
    even = uniform(trace.attention, trace.support).unsqueeze(0)
    start = time.perf_counter()
    model.predict(trace, even)
    again = (time.perf_counter() - start) / len(rows)

    words = np.array([len(text) for text in evidence.split.tokens])
    total = float(lengths.sum())
    searched = min(len(lengths), settings.search_instances)
    integrated = min(len(lengths), settings.integrated_gradients_instances) / len(lengths)
    scanned = min(len(lengths), settings.scan_instances) / len(lengths)
    rows_searched = searched * settings.search_restarts * settings.search_steps
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
    return {name: cost for name, cost in found.items() if not evidence.done(name)}


def told(costs: dict[str, float]) -> str | None:
    """`about 3 minutes (leave-one-out 70 %, permutation 20 %)`; None where nothing is left to do."""
    total = sum(costs.values())
    if total <= 0:
        return None
    largest = sorted(costs.items(), key=lambda item: -item[1])[:3]
    parts = ", ".join(f"{name.replace('_', ' ')} {cost / total:.0%}" for name, cost in largest)
    length = f"{total:.0f} seconds" if total < 90 else f"{total / 60:.0f} minutes"
    return f"about {length} ({parts})"
