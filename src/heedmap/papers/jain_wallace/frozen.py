"""Attention frozen to the words' log-odds, at test only; and how far a model's own attention is from it."""

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.data.batches import Batch, scatter_rows
from heedmap.data.corpus import Split
from heedmap.experiments.evidence import Evidence
from heedmap.measures import jensen_shannon
from heedmap.models.classifier import AttentionClassifier
from heedmap.models.normalisers import normalise
from heedmap.models.scores import NO_SCORE, Lexical
from heedmap.settings import AuditSettings


class Frozen(NamedTuple):
    """One row a text: logits under the frozen weights, the model's own logits, JSD(own, frozen weights).

    `bare`: no word of the text has a coefficient, so that its frozen weights are uniform.
    """

    logits: Float[Tensor, "N C"]
    own: Float[Tensor, "N C"]
    divergence: Float[Tensor, " N"]
    bare: Bool[Tensor, " N"]


def log_odds_attention(scores: Lexical, batch: Batch) -> Float[Tensor, "B T"]:
    """α = softmax over the text's words of |b_w|; uniform where no word has a coefficient."""
    return normalise(scores(batch.ids[:, 1:-1]), batch.mask, "softmax")


def freeze(model: AttentionClassifier, split: Split, scores: Lexical) -> Frozen:
    """Read every text once, and decode it a second time under the frozen weights."""
    rows, columns = [], []
    for batch, trace in Evidence(model, split, AuditSettings(), {}).passes():
        weights = log_odds_attention(scores, batch)
        logits = model.predict(trace, weights[None, :, None])[0]
        apart = jensen_shannon(trace.attention[:, 0].double(), weights.double())
        known = batch.mask & (scores(batch.ids[:, 1:-1]) > NO_SCORE)
        rows.append(trace.rows)
        columns.append((logits, trace.logits, apart, ~known.any(1)))
    return Frozen(*(scatter_rows(rows, part) for part in zip(*columns, strict=True)))


def lexical(coefficients: Float[Tensor, " V"]) -> Lexical:
    """Scores by coefficients."""
    scores = Lexical(len(coefficients))
    scores.set(coefficients)
    return scores
