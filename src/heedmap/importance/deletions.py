"""Leave-one-out as the papers run it: delete one token, read the whole text again.

The slow, obvious way; it serves every model. Faster ways to the same numbers: leave_one_out.py.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.models.trace import Model


def reread_without_each(
    model: Model, texts: Sequence[Sequence[str]], batch_size: int = 256
) -> list[Float[Tensor, "n C"]]:
    """Logits of every text without each of its tokens; NaN for the only token of a text."""
    jobs = [(i, j) for i, text in enumerate(texts) for j in range(len(text)) if len(text) > 1]
    jobs.sort(key=lambda job: len(texts[job[0]]))  # stable: similar lengths share a batch
    results = [torch.full((len(text), len(model.classes)), torch.nan) for text in texts]
    for start in range(0, len(jobs), batch_size):
        some = jobs[start : start + batch_size]
        shorter = [[*texts[i][:j], *texts[i][j + 1 :]] for i, j in some]
        logits = model.trace(model.batch(shorter, range(len(shorter)))).logits.cpu()
        for (i, j), row in zip(some, logits, strict=True):
            results[i][j] = row
    return results
