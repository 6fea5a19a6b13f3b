"""What an audit will cost, measured on one batch before it begins."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedmap.counterfactual.row_weights import uniform
from heedmap.data.texts import beginning
from heedmap.experiments.context import AuditContext
from heedmap.models.layered import Layered
from heedmap.models.trace import Trace
from heedmap.terminal.displays import span

BACKWARD = 3.0  # cost of a forward and backward pass, in forward passes
PROBE = 4096  # positions in the measured batch
PROBED = 512  # tokens per text of the measured batch, of models of our own, which read any length


@dataclass(frozen=True)
class CostProbe:
    """The speed of one batch of texts of typical length, of which the first PROBED tokens are measured.

    `second`: seconds per position of a pass; `again`: seconds per whole text to recompute the logits from the
    weights; `trace`: the trace of the batch.
    """

    context: AuditContext
    second: float
    again: float
    trace: Trace

    def reading(self, passes: float, sample_size: int | None = None) -> float:
        """Return the seconds that `passes` over all texts take, or over a sample of at most `sample_size`."""
        share = 1.0 if sample_size is None else self.sampled(sample_size)
        return float(self.context.lengths.sum()) * share * self.second * passes

    def squares(self) -> float:
        """Return how many measured texts all texts are worth where time grows with the square of the length."""
        return float(np.maximum(1.0, (self.context.lengths / PROBED) ** 2).sum())

    def sampled(self, sample_size: int) -> float:
        """Return the share of the texts in a sample of at most `sample_size`."""
        texts = self.context.split.whole_texts
        return min(texts, sample_size) / texts


def measure(context: AuditContext) -> CostProbe:
    """Time a pass, and a read-out from the weights, on one batch of texts of typical length."""
    model, lengths = context.model, context.lengths
    typical = typical_rows(lengths)
    positions = min(PROBE, model.tokens_at_once)
    rows = typical[: max(1, positions // int(lengths[typical[0]]))]
    texts = [context.texts[i] for i in rows]
    if not isinstance(model, Layered):
        texts = [beginning(text, PROBED) for text in texts]
    batch = model.batch(texts, rows.tolist())
    measured_positions = float(model.lengths(texts).sum())
    model.logits(batch)  # the first pass also warms up
    start = time.perf_counter()
    model.logits(batch)
    second = (time.perf_counter() - start) / measured_positions
    trace = model.trace(batch)
    even = uniform(trace.attention, trace.support).unsqueeze(0)
    start = time.perf_counter()
    model.predict(trace, even)
    again = (
        (time.perf_counter() - start) / len(rows) * float(lengths[rows].sum()) / measured_positions
    )
    return CostProbe(context, second, again, trace)


def typical_rows(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of the texts from the median length on, the shortest first."""
    return np.argsort(lengths, kind="stable")[len(lengths) // 2 :]


def forecast(costs: dict[str, float]) -> str | None:
    """Return `about 3 min (leave-one-out 70 %, permutation 20 %)`; None where nothing is left to do."""
    total = sum(costs.values())
    if total <= 0:
        return None
    largest = sorted(costs.items(), key=lambda item: -item[1])[:3]
    parts = ", ".join(f"{name.replace('_', ' ')} {cost / total:.0%}" for name, cost in largest)
    return f"about {span(total)} ({parts})"
