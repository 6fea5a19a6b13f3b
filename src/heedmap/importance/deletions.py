"""Leave-one-out as the papers run it: delete one token, read the whole text again.

The slow, obvious way; it serves every model. Texts of equal length share full batches, so that next to
nothing is padded. Faster ways to the same numbers, for our own encoders: leave_one_out.py.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import sorted_batches
from heedmap.data.texts import Text, exchanged
from heedmap.models.trace import Model

AT_ONCE = 4096  # deletions written out at a time: a long text has many, each as long as itself


def reread_without_each(
    model: Model, texts: Sequence[Text], how: str = "remove"
) -> list[Float[Tensor, "n C"]]:
    """Logits of every text without each of its tokens; NaN for the only token of a text.

    `how`: "remove" deletes the token, "mask" puts the model's mask (or unknown word) in its place.
    """
    jobs = [(i, j) for i, text in enumerate(texts) for j in range(len(text)) if len(text) > 1]
    results = [torch.full((len(text), len(model.classes)), torch.nan) for text in texts]
    for start in range(0, len(jobs), AT_ONCE):
        some = jobs[start : start + AT_ONCE]
        changed = [
            exchanged(texts[i], j) if how == "remove" else model.mask_token(texts[i], j)
            for i, j in some
        ]
        for rows in sorted_batches(model.lengths(changed), model.tokens_at_once):
            batch = model.batch([changed[row] for row in rows], range(len(rows)))
            logits = model.logits(batch).cpu().float()
            for row, found in zip(rows, logits, strict=True):
                i, j = some[row]
                results[i][j] = found
    return results
