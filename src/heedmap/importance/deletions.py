"""Leave-one-out as in the papers: delete one token, read the whole text again.

This is the slow, obvious way, for any model. Texts of equal length share batches, so that little is
padded. leave_one_out.py has faster ways to the same numbers for our own encoders.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import sorted_batches
from heedmap.data.texts import Text, exchanged
from heedmap.models.trace import Model

AT_ONCE = 4096  # deletions per block: a text of n tokens has n, each about as long as itself


def reread_without_each(
    model: Model, texts: Sequence[Text], how: str = "remove"
) -> list[Float[Tensor, "n C"]]:
    """Return logits of every text without each of its tokens; NaN for the only token of a text.

    `how`: "remove" deletes the token, "mask" replaces it by the model's mask or unknown word.
    """
    jobs = [(i, j) for i, text in enumerate(texts) for j in range(len(text)) if len(text) > 1]
    results = [torch.full((len(text), len(model.classes)), torch.nan) for text in texts]
    for start in range(0, len(jobs), AT_ONCE):
        chunk = jobs[start : start + AT_ONCE]
        changed = [
            exchanged(texts[i], j) if how == "remove" else model.mask_token(texts[i], j)
            for i, j in chunk
        ]
        for rows in sorted_batches(model.lengths(changed), model.tokens_at_once):
            batch = model.batch([changed[row] for row in rows], range(len(rows)))
            logits = model.logits(batch).cpu().float()
            for row, row_logits in zip(rows, logits, strict=True):
                i, j = chunk[row]
                results[i][j] = row_logits
    return results
