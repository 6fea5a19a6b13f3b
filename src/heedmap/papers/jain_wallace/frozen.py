"""Attention frozen to the words' log-odds, at test only; and how far a model's own attention is from it."""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.data.batches import Batch, scatter_rows
from heedmap.data.corpus import Corpus, Split
from heedmap.experiments.context import AuditContext
from heedmap.measures import change_in_prediction, jensen_shannon
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.normalisers import normalise
from heedmap.models.scores import NO_SCORE, Lexical
from heedmap.settings.audit import AuditSettings
from heedmap.training.log_odds import fit_log_odds


class Frozen(NamedTuple):
    """One row per text: logits under the frozen weights, the model's own logits, JSD(own, frozen weights).

    `bare`: no word of the text has a coefficient, so that its frozen weights are uniform. `largest` is the
    model's own largest weight.
    """

    logits: Float[Tensor, "B C"]
    own: Float[Tensor, "B C"]
    divergence: Float[Tensor, " B"]
    bare: Bool[Tensor, " B"]
    largest: Float[Tensor, " B"]


def log_odds_attention(scores: Lexical, batch: Batch) -> Float[Tensor, "B T"]:
    """Return α = softmax over the text's words of |b_w|; uniform where no word has a coefficient."""
    return normalise(scores(batch.ids[:, 1:-1]), batch.mask, "softmax")


def freeze(model: AttentionClassifier, split: Split, scores: Lexical) -> Frozen:
    """Read every text once, and decode it a second time under the frozen weights."""
    rows, columns = [], []
    for batch, trace in AuditContext(model, split, AuditSettings(), {}).passes():
        weights = log_odds_attention(scores, batch)
        logits = model.predict(trace, weights[None, :, None])[0]
        divergence = jensen_shannon(trace.attention[:, 0].double(), weights.double())
        has_coefficient = batch.mask & (scores(batch.ids[:, 1:-1]) > NO_SCORE)
        rows.append(trace.rows)
        largest = trace.attention[:, 0].amax(1).double()
        columns.append((logits, trace.logits, divergence, ~has_coefficient.any(1), largest))
    return Frozen(*(scatter_rows(rows, part) for part in zip(*columns, strict=True)))


def text_by_text(model: AttentionClassifier, corpus: Corpus) -> dict[str, list[Any]]:
    """Return columns over the test texts: attention beside the log-odds weights, and what these change.

    `predicted` class of the model, `n_tokens`, `max_attention`, `jsd` (nats) between the two weightings, and
    `tvd` of the two predictions.
    """
    test = corpus.splits["test"]
    frozen = freeze(model, test, lexical(fit_log_odds(corpus, model.vocabulary).coefficients))
    return {
        "predicted": frozen.own.argmax(1).tolist(),
        "n_tokens": [len(tokens) for tokens in test.tokens],
        "max_attention": frozen.largest.tolist(),
        "jsd": frozen.divergence.tolist(),
        "tvd": change_in_prediction(frozen.own, frozen.logits).tolist(),
    }


def lexical(coefficients: Float[Tensor, " V"]) -> Lexical:
    """Make scores from coefficients."""
    scores = Lexical(len(coefficients))
    scores.set(coefficients)
    return scores
