"""What a trained model makes of a split: its logits and its weights, text by text."""

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import Encoded, Ragged, scatter_rows, sorted_batches
from heedmap.models.classifier import Classifier
from heedmap.training.evaluation import EVALUATION_TOKENS


@torch.no_grad()
def read(model: Classifier, split: Encoded) -> tuple[Float[Tensor, "N C"], Ragged]:
    """Return the logits of all texts, and the weights that they were read with, in the order of the split."""
    model.eval()
    logits, rows, weights = [], [], {}
    for batch_rows in sorted_batches(split.lengths, EVALUATION_TOKENS):
        batch = split.batch(batch_rows).to(model.device)
        outputs, attention = model(batch)
        logits.append(model.as_logits(outputs).cpu())
        rows.append(batch.rows.cpu())
        for row, mask, text_attention in zip(
            batch.rows.tolist(), batch.mask, attention[:, 0], strict=True
        ):
            weights[row] = text_attention[mask].numpy(force=True)
    if not rows:
        return torch.zeros(0, len(model.classes)), Ragged([])
    return scatter_rows(rows, logits), Ragged([weights[row] for row in range(len(weights))])
