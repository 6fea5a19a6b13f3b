"""Compute leave-one-out without reading again: reuse everything that a deletion leaves unchanged.

Every encoder computes, for each deletion j and position t, the score of t in the text without j, and the
context of j under any weights; one attention and one read-out then decode all deletions. The numbers are
those of deletions.py.

"Relevance" is a state projected by the decoder's linear part (`AttentionClassifier.projection`).

* average, mlp, none: only the deleted token changes. Where a softmax makes the weights and the read-out is
  linear, all deletions have a closed form (leave_one_out_alone.py).
* cnn, small-cnn: only windows over the seam change, at most three positions on either side of it.
* lstm, gru: forward states before j and backward states after j stay, and so do all input projections
  (recurrent_leave_one_out.py).

Of texts of sentences a sentence is deleted: the vectors of the others stay, and are what the encoder reads.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heedmap.data.batches import Batch
from heedmap.data.texts import Text
from heedmap.importance.deletions import reread_under, reread_without_each, rescaled
from heedmap.importance.leave_one_out_alone import reads_alone, without_each, without_each_under
from heedmap.importance.recurrent_leave_one_out import Project, recurrent_without_each
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.encoders import CNN, ENCODERS, GRU, LSTM
from heedmap.models.guided_classifier import GuidedClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.normalisers import normalise
from heedmap.models.per_class_classifier import PerClassClassifier
from heedmap.models.scores import Lexical
from heedmap.models.trace import Model, Trace

# Deletions per block: their gates stay in the processor's cache.
ROWS = 4096
MOST = 1 << 28  # numbers per text; a larger one is read again for each deletion
ELEMENTS = 1 << 25  # of the new states or their projections, over (text, deletion, position)


def logits_without_each(
    model: Model, batch: Batch, texts: Sequence[Text], deletion: str = "remove"
) -> Float[Tensor, "B T C"]:
    """Return logits of each text without its token t; NaN where t is padding or the only token.

    `deletion`: the token is removed, or masked (`Model.mask_token`).
    """
    if isinstance(model, AttentionClassifier) and reads_alone(model, deletion):
        return without_each(model, batch)
    guided = isinstance(model, GuidedClassifier)  # without a token its guide gives other weights
    if (
        isinstance(model, AttentionClassifier)
        and not guided
        and _is_reusable(model, batch, deletion)
    ):
        return _reuse(model, batch, None).squeeze(0)
    lists = reread_without_each(model, texts, deletion)
    logits = torch.nn.utils.rnn.pad_sequence(lists, batch_first=True, padding_value=torch.nan)
    return logits.to(batch.mask.device)


def logits_without_each_under(
    model: Model,
    batch: Batch,
    trace: Trace,
    texts: Sequence[Text],
    attention: Float[Tensor, "S B K P"],
    deletion: str = "remove",
) -> Float[Tensor, "S B T C"]:
    """Return logits of each text without its token t under S imposed weightings; NaN as above.

    What is imposed on the text stays: without the token, the others' weights are scaled to sum to what they
    did. A masked token keeps its weight. NaN also where a tokenizer reads the other words differently.
    """
    if isinstance(model, AttentionClassifier) and reads_alone(model, deletion):
        return without_each_under(trace, attention)
    if isinstance(model, AttentionClassifier) and _is_reusable(model, batch, deletion):
        return _reuse(model, batch, attention.squeeze(2))
    return reread_under(model, trace, texts, attention, deletion).to(attention.device)


def _is_reusable(model: AttentionClassifier, batch: Batch, deletion: str) -> bool:
    # The exact type: of a subclass it is not known what a deletion changes.
    return (
        type(model.encoder) in ENCODERS.values()
        and not isinstance(model, PerClassClassifier)
        and not isinstance(model.score, Lexical)  # scores of words, not of states: read again
        and deletion == "remove"
        and batch.mask.shape[1] ** 2 * _stored_size(model) <= MOST
    )


def _stored_size(model: AttentionClassifier) -> int:
    """Return how many numbers are stored per new state."""
    return min(model.projection.out_features, model.projection.in_features // 2)


@torch.no_grad()
def _reuse(
    model: AttentionClassifier, batch: Batch, imposed: Float[Tensor, "S B T"] | None
) -> Float[Tensor, "S B T C"]:
    """Return logits under the model's own weights (S = 1) or imposed ones."""
    size = max(1, batch.mask.shape[1])
    at_once = max(1, min(ROWS // size, ELEMENTS // (size * size * _stored_size(model))))
    parts = []
    for start in range(0, len(batch.rows), at_once):
        rows = slice(start, start + at_once)
        part = batch.taken(rows)
        weights = None if imposed is None else imposed[:, rows, : part.mask.shape[1]]
        logits = _without_each(model, part, weights)
        missing_columns = batch.mask.shape[1] - part.mask.shape[1]
        parts.append(functional.pad(logits, (0, 0, 0, missing_columns), value=torch.nan))
    return torch.cat(parts, dim=1)


def _without_each(
    model: AttentionClassifier, batch: Batch, imposed: Float[Tensor, "S B T"] | None
) -> Float[Tensor, "S B J C"]:
    query, mask, size = model.encode_query(batch), batch.mask, batch.mask.shape[1]
    scores, project = _states(model, batch, query)
    remaining = mask.unsqueeze(1) & ~torch.eye(size, dtype=torch.bool, device=mask.device)
    if imposed is None:
        weightings = normalise(scores, remaining, model.settings.normaliser).unsqueeze(0)
    else:
        weightings = rescaled(imposed.unsqueeze(2) * remaining)
    logits = []
    for weights in weightings:
        projected = project(weights) + model.projection.bias
        logits.append(model.as_logits(model.decode(projected, batch, query)))
    defined = mask & (mask.sum(1, keepdim=True) > 1)
    return torch.stack(logits).masked_fill(~defined.unsqueeze(-1), torch.nan)


def _states(
    model: AttentionClassifier, batch: Batch, query: Tensor | None
) -> tuple[Float[Tensor, "B J T"], Project]:
    """Return the scores of position t without token j, and a function that projects contexts.

    J = T, and t = j is meaningless. The function takes weights (B, J, T), 0 at t = j, to the contexts projected
    by the decoder's linear part.
    """
    inputs, marks = _inputs(model, batch)
    if isinstance(model.encoder, LSTM | GRU):
        return recurrent_without_each(model, model.encoder, inputs, batch, query, marks=marks)
    encoder_inputs = inputs if marks else inputs[:, 1:-1]
    states: Tensor = model.encoder(encoder_inputs, batch.lengths + 2 * marks)
    states = states[:, 1:-1] if marks else states
    scores = model.score(states, query).unsqueeze(1).repeat(1, states.shape[1], 1)
    relevance = torch.matmul(states, model.projection.weight.T)
    if isinstance(model.encoder, CNN):
        return scores, _cnn_without_each(model, model.encoder, inputs, query, scores, relevance)
    return scores, lambda weights: torch.matmul(weights, relevance)


def _inputs(model: AttentionClassifier, batch: Batch) -> tuple[Float[Tensor, "B L E"], bool]:
    """Return what the encoder reads, with a mark at both ends (L = T + 2), and whether it reads the marks.

    Marks that are not read are 0, as what is beyond the ends is for a window.
    """
    embedded = model.embed(batch)
    if isinstance(model, HierarchicalClassifier):
        vectors = model.sentence_vectors(embedded, batch)
        return functional.pad(vectors, (0, 0, 1, 1)), False
    if model.encoder.marks:
        return embedded, True
    return embedded.masked_fill(~model.token_positions(batch).unsqueeze(-1), 0.0), False


def _cnn_without_each(
    model: AttentionClassifier,
    encoder: CNN,
    embedded: Float[Tensor, "B L E"],
    query: Tensor | None,
    scores: Float[Tensor, "B J T"],
    relevance: Float[Tensor, "B T O"],
) -> Project:
    """Update the scores near the seam of every deletion in place; return the projection of the contexts.

    A window is a sum of taps, each the product of a filter column with one embedding. All taps are
    computed once, and a window over the seam sums other taps.
    """
    reach = max(c.kernel_size[0] // 2 for c in encoder.windows)
    size = scores.shape[1]
    changes: list[tuple[Tensor, Tensor, Tensor]] = []
    for seam_offset in (*range(-reach, 0), *range(1, reach + 1)):
        if abs(seam_offset) >= size:
            continue
        columns = []
        for convolution in encoder.windows:
            assert convolution.bias is not None
            half = convolution.kernel_size[0] // 2
            window = torch.zeros((), device=embedded.device)
            for offset in range(-half, half + 1):
                # Relative to j in the shortened text; `source` skips j.
                place = seam_offset + offset
                source = (
                    place + 1
                    if seam_offset < 0 <= place
                    else place - 1
                    if place <= 0 < seam_offset
                    else place
                )
                tap = functional.linear(embedded, convolution.weight[:, :, offset + half])
                window = window + _shift(tap, source)
            columns.append(window + convolution.bias)
        states = functional.relu(torch.cat(columns, dim=-1))[:, 1:-1]  # one per deletion j
        deleted = torch.arange(
            max(0, -seam_offset), size - max(0, seam_offset), device=embedded.device
        )
        scores[:, deleted, deleted + seam_offset] = model.score(states[:, deleted], query)
        new = torch.matmul(states[:, deleted], model.projection.weight.T)
        changes.append((deleted, deleted + seam_offset, new - relevance[:, deleted + seam_offset]))

    def project(weights: Float[Tensor, "B J T"]) -> Float[Tensor, "B J O"]:
        total = torch.matmul(weights, relevance)
        for deleted, place, change in changes:
            total[:, deleted] += weights[:, deleted, place].unsqueeze(-1) * change
        return total

    return project


def _shift(values: Float[Tensor, "B L D"], shift: int) -> Float[Tensor, "B L D"]:
    """Return values[:, t + by], 0 beyond the ends."""
    return functional.pad(values, (0, 0, max(0, -shift), max(0, shift)))[
        :, max(0, shift) : max(0, shift) + values.shape[1]
    ]
