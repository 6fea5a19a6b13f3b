"""Compute integrated gradients (Sundararajan et al. 2017): with Captum, or of recurrent models ourselves."""

from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.importance.recurrent_integrated_gradients import recurrent_attributions
from heedmap.measures import levelled, log_odds, rounding_of
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.classifier import Classifier
from heedmap.models.encoders import GRU, LSTM
from heedmap.models.trace import Model, Trace

POSITIONS = 16_384  # at most so many positions have their graphs held at a time


def integrated_gradients(
    model: Model, batch: Batch, trace: Trace, steps: int, imposed: Tensor | None = None
) -> tuple[Float[Tensor, "B T"], Float[Tensor, " B"]]:
    """Return |attribution| per token to the log-odds of the predicted class, and the completeness error.

    The path leads from zero vectors at the tokens (start and end marks stay) to the text, in Gauss-Legendre
    steps; the attention changes along it, unless weights (B, K, P) are imposed. The error is |Σ attributions −
    (y(text) − y(baseline))|, in log-odds; if it is large, more steps are needed.
    """
    embedded = model.embed(batch).detach()
    baseline = embedded.masked_fill(model.token_positions(batch).unsqueeze(-1), 0.0)
    # A model of sentences is one too, but its encoder does not read the words.
    if (
        isinstance(model, AttentionClassifier)
        and type(model).encode is Classifier.encode
        and isinstance(model.encoder, LSTM | GRU)
    ):
        values, summed, error = recurrent_attributions(
            model, model.encoder, batch, (baseline, embedded), trace.predicted, steps, imposed
        )
        values = values.abs().masked_fill(~batch.mask, 0.0)
        return levelled(values, batch.mask, rounding_of(summed)), error
    from captum.attr import IntegratedGradients

    def target(path: Tensor) -> Tensor:
        times = len(path) // len(embedded)  # Captum stacks the steps along the batch
        weights = None if imposed is None else imposed.repeat(times, 1, 1)
        logits = model.logits_from(path, batch.repeated(times), weights)
        return log_odds(logits, trace.predicted.repeat(times))

    attributions, error = IntegratedGradients(target, multiply_by_inputs=True).attribute(
        embedded,
        baselines=baseline,
        n_steps=steps,
        return_convergence_delta=True,
        internal_batch_size=_at_once(embedded, steps),
    )
    values = model.on_tokens(attributions.sum(-1), batch).detach().abs()
    values = values.masked_fill(~batch.mask, 0.0)
    summed = model.on_tokens(attributions.abs().sum(-1), batch).detach()
    return levelled(values, batch.mask, rounding_of(summed)), error.detach().abs()


def _at_once(embedded: Float[Tensor, "B L E"], steps: int) -> int | None:
    """Return how many rows of all steps are read at a time; None for all."""
    rows, positions = embedded.shape[:2]
    at_once = max(rows, POSITIONS // positions)
    return None if at_once >= rows * steps else at_once
