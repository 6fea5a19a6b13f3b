"""What would other weights predict? What each word says for each class, from which any page can compute it."""

import numpy as np
import pyarrow as pa

from heedmap.data.corpus import Split
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import Experiment
from heedmap.experiments.text_tables import text_table
from heedmap.files.tables import ragged
from heedmap.models.trace import Model

MOST_CLASSES = 64  # a thousand classes would take a thousand numbers per word

COLUMNS = Columns(
    "One row per text. The prediction under any weights α is the softmax of Σ α · `relevance` + `bias`. Only "
    f"where that holds, and of at most {MOST_CLASSES} classes.",
    {
        **shared("row"),
        "relevance": (
            "list per token of lists per class, logits",
            "the output relevance: what the token's state says for each class (Snell et al. 2021)",
        ),
        "bias": ("list per class, logits", "what is predicted of no token at all"),
    },
)


def relevance(context: AuditContext) -> pa.Table:
    """Return each text's linear read-out; of two classes with one sigmoid output z the logits are (0, z)."""
    rows, values, masks, biases = [], [], [], []
    for trace in context.traces:
        assert trace.readout is not None
        of_tokens = trace.readout.relevance[:, 0]
        rows.append(trace.rows)
        values.append(of_tokens.flatten(1))
        masks.append(trace.mask.repeat_interleave(of_tokens.shape[-1], dim=1))
        biases.append(trace.readout.bias)
    flat = ragged(rows, values, masks)
    classes = len(biases[0])
    starts = np.arange(0, len(flat.values) + 1, classes, dtype=np.int32)
    of_words = pa.ListArray.from_arrays(pa.array(starts), flat.values)
    texts = pa.array(flat.offsets.to_numpy() // classes, pa.int32())
    bias = biases[0].numpy(force=True)
    return text_table(
        context,
        {
            "relevance": pa.ListArray.from_arrays(texts, of_words),
            "bias": pa.array([bias] * len(flat)),
        },
    )


def _applies(model: Model, split: Split) -> bool:
    return "read-out" in model.capabilities and 2 <= len(model.classes) <= MOST_CLASSES


EXPERIMENT = Experiment(
    "relevance", relevance, columns=COLUMNS, place=71, applies=_applies, in_chunks=True
)
