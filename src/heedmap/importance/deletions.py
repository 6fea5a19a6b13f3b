"""Compute leave-one-out as in the papers: delete one token, and read the whole text again.

This is the slow, obvious way, for any model. Texts of equal length share batches, so that little is
padded. leave_one_out.py has faster ways to the same numbers for our own encoders.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.data.batches import sorted_batches
from heedmap.data.texts import Text, exchanged, shortened
from heedmap.importance.leave_one_out_alone import logits_of_kept, reads_alone
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.layered import Continuing
from heedmap.models.trace import Model, Trace
from heedmap.terminal.progress import track

AT_ONCE = 4096  # deletions per block: a text of n tokens has n, each about as long as itself


def reread_without_each(
    model: Model, texts: Sequence[Text], deletion: str = "remove"
) -> list[Float[Tensor, "n C"]]:
    """Return logits of every text without each of its tokens; NaN for the only token of a text.

    `deletion`: "remove" deletes the token, "mask" replaces it by the model's mask or unknown word.
    """
    jobs = [(i, j) for i, text in enumerate(texts) for j in range(len(text)) if len(text) > 1]
    results = [torch.full((len(text), len(model.classes)), torch.nan) for text in texts]
    for start in track(range(0, len(jobs), AT_ONCE)):
        chunk = jobs[start : start + AT_ONCE]
        if isinstance(model, Continuing):
            chunk = _continued(model, texts, chunk, deletion, results)
        changed = [_without_token(model, texts[i], j, deletion) for i, j in chunk]
        for (i, j), row_logits in zip(chunk, read(model, changed), strict=True):
            results[i][j] = row_logits
    return results


def _continued(
    model: Continuing,
    texts: Sequence[Text],
    jobs: Sequence[tuple[int, int]],
    deletion: str,
    results: list[Tensor],
) -> list[tuple[int, int]]:
    """Fill in what can be read from the first change on, and return the other deletions (text, token)."""
    assert isinstance(model, Model)
    places = {i: [j for _, j in of_text] for i, of_text in groupby(jobs, key=itemgetter(0))}
    changed = [[_without_token(model, texts[i], j, deletion) for j in places[i]] for i in places]
    logits_by_text = model.continued([texts[i] for i in places], changed)
    left: list[tuple[int, int]] = []
    for i, logits in zip(places, logits_by_text, strict=True):
        if logits is None:
            left += [(i, j) for j in places[i]]
        else:
            results[i][places[i]] = logits
    return left


@torch.no_grad()
def read(model: Model, texts: Sequence[Text]) -> Float[Tensor, "N C"]:
    """Return the logits of texts in float64; texts of similar length share batches."""
    logits = torch.zeros(len(texts), len(model.classes), dtype=torch.float64)
    for rows in track(sorted_batches(model.lengths(texts), model.tokens_at_once)):
        batch = model.batch([texts[row] for row in rows], range(len(rows)))
        logits[rows] = model.logits(batch).cpu().double()
    return logits


def _without_token(model: Model, text: Text, j: int, deletion: str) -> Text:
    return exchanged(text, j) if deletion == "remove" else model.mask_token(text, j)


def reread_kept(
    model: Model, texts: Sequence[Text], keep_masks: Sequence[Bool[np.ndarray, "_ _"]]
) -> list[Float[Tensor, "_ C"]]:
    """Return logits of every text with only some of its tokens, J masks of them per text, in float64.

    Equal masks of a text are read once: the words of one ranking are often those of another. A mask must keep
    at least one token: not every model reads an empty text. Models that read each token by itself have a
    closed form (leave_one_out_alone.py).
    """
    if isinstance(model, AttentionClassifier) and reads_alone(model, "remove"):
        return [logits_of_kept(model, *pair) for pair in zip(texts, keep_masks, strict=True)]
    distinct = [np.unique(masks, axis=0, return_inverse=True) for masks in keep_masks]
    jobs = [(i, j) for i, (masks, _) in enumerate(distinct) for j in range(len(masks))]
    results = [
        torch.zeros(len(masks), len(model.classes), dtype=torch.float64) for masks, _ in distinct
    ]
    for start in track(range(0, len(jobs), AT_ONCE)):
        chunk = jobs[start : start + AT_ONCE]
        logits = read(model, [shortened(texts[i], distinct[i][0][j]) for i, j in chunk])
        for (i, j), row_logits in zip(chunk, logits, strict=True):
            results[i][j] = row_logits
    return [
        logits[torch.from_numpy(inverse.reshape(-1))]
        for logits, (_, inverse) in zip(results, distinct, strict=True)
    ]


@torch.no_grad()
def reread_under(
    model: Model,
    trace: Trace,
    texts: Sequence[Text],
    attention: Float[Tensor, "S B K P"],
    deletion: str = "remove",
) -> Float[Tensor, "S B T C"]:
    """Return logits without each token under S weightings imposed on the whole text, and kept."""
    jobs = [(i, j) for i, text in enumerate(texts) for j in range(len(text)) if len(text) > 1]
    shape = (len(attention), len(texts), trace.mask.shape[1], len(model.classes))
    results = torch.full(shape, torch.nan)
    for start in track(range(0, len(jobs), AT_ONCE)):
        chunk = jobs[start : start + AT_ONCE]
        changed = [_without_token(model, texts[i], j, deletion) for i, j in chunk]
        for rows in track(sorted_batches(model.lengths(changed), model.tokens_at_once)):
            without = model.trace(model.batch([changed[row] for row in rows], range(len(rows))))
            imposed = attention.new_zeros(len(attention), *without.attention.shape)
            is_aligned = []
            for place, row in enumerate(rows):
                i, j = chunk[row]
                # A word that a model is asked about stays as a mask, whatever the deletion is.
                stays = len(changed[row]) == len(texts[i])
                done = "mask" if stays else deletion
                weights = _without(trace, i, attention[:, i], j, without, place, done)
                is_aligned.append(weights is not None)
                if weights is not None:
                    imposed[:, place] = weights
            logits = model.predict(without, imposed).cpu().float()
            for place, row in enumerate(rows):
                if is_aligned[place]:
                    i, j = chunk[row]
                    results[:, i, j] = logits[:, place]
    return results


def _without(
    trace: Trace,
    i: int,
    attention: Float[Tensor, "S K P"],
    j: int,
    without: Trace,
    place: int,
    deletion: str,
) -> Float[Tensor, "S K2 P2"] | None:
    """Return text i's weights for the text without token j; None if the other words' positions differ."""
    old_words, new_words = _words(trace, i), _words(without, place)
    old = ((old_words > -2) & (old_words != j)).nonzero().squeeze(1)
    new = ((new_words > -2) & ((new_words != j) | (deletion == "remove"))).nonzero().squeeze(1)
    token, mark = (old_words == j).nonzero().squeeze(1), (new_words == j).nonzero().squeeze(1)
    if len(old) != len(new):
        return None
    # Of mass, from old to new positions.
    moves = attention.new_zeros(len(new_words), len(old_words))
    moves[new, old] = 1.0
    rows = torch.zeros_like(new_words)
    rows[new] = old
    if deletion != "remove" and len(mark) and len(token):
        moves[mark.unsqueeze(1), token] = 1 / len(mark)
        rows[mark] = token[0]
    if trace.all_rows:
        squares = attention.reshape(len(attention), -1, len(old_words), len(old_words))[:, :, rows]
        squares = squares * (new_words > -2).unsqueeze(1)
        attention = squares.flatten(1, 2)
    return rescaled(attention @ moves.T)


def _words(trace: Trace, i: int) -> Int[Tensor, " P"]:
    """Return the token of each position of text i: −1 for special tokens, −2 for padding."""
    if trace.words is not None:
        return trace.words[i]
    place = torch.arange(trace.mask.shape[1], device=trace.mask.device)
    return torch.where(trace.mask[i], place, -2)


def rescaled(attention: Float[Tensor, "*rows P"]) -> Float[Tensor, "*rows P"]:
    """Scale each row to sum to 1; a row of zeros stays."""
    mass = attention.sum(-1, keepdim=True)
    return attention / torch.where(mass > 0, mass, 1.0)
