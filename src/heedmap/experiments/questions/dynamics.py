"""How did the map come about? What was recorded while the model was trained (Snell et al. 2021).

Their account: under nearly uniform attention the output relevance of telling words grows first, and then the
attention is drawn to it.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import Experiment
from heedmap.files.tables import padded
from heedmap.measures import top_match

ELEMENTS = 1 << 22
QUANTITIES = ("attention", "relevance", "influence")


COLUMNS = Columns(
    "One row per recorded step of the training and text. Numbers per token have 16 bits; null or NaN where a "
    "quantity was not recorded.",
    {
        **shared("row", "label"),
        "step": ("count, from 0", "steps of the training so far"),
        "predicted": ("class", "what the model predicts at this step"),
        "loss": ("nats, from 0", "−ln p of the label"),
        "tokens": ("list per token", "the text; at step 0 alone"),
        "attention": ("list per token, from 0", "the heat map"),
        "relevance": (
            "list per token, logits",
            "output relevance for the label less its mean for the other classes, bias included",
        ),
        "influence": (
            "list per token",
            "−∂loss/∂g for a gate g = 1 on the token's embedding; above 0 where more of it makes the label "
            "likelier",
        ),
        "match_{quantity}": (
            "0 or 1",
            "whether the token most attended to at the last step is among the top 5 % by {quantity} at this "
            "one",
        ),
        "chance_{quantity}": ("0 to 1", "the same of a random order, exactly"),
    },
    quantity={
        "attention": "attention",
        "relevance": "output relevance",
        "influence": "influence",
    },
)


def dynamics(context: AuditContext) -> pa.Table:
    """Return what was recorded of the test texts, and how well each quantity foretells the final attention.

    The match is `measures.top_match`. Only this: no text is read again.
    """
    assert context.recorded is not None
    recorded = context.recorded.filter(pc.equal(context.recorded["split"], "test"))
    recorded = recorded.drop_columns(["split"])
    steps, texts = recorded["step"].to_numpy(), recorded["row"].to_numpy()
    final_index = {row: i for i, row in enumerate(texts) if steps[i] == steps.max()}
    final = recorded["attention"].take(pa.array([final_index[row] for row in texts]))
    for name in QUANTITIES:
        match, chance = np.full((2, len(recorded)), np.nan)
        if recorded[name].null_count < len(recorded):
            wide = [column.cast(pa.list_(pa.float32())) for column in (final, recorded[name])]
            for rows, values, mask in padded(wide, ELEMENTS):
                matches = top_match(values[:, 0], values[:, 1], mask)
                match[rows], chance[rows] = (values_of_texts.numpy() for values_of_texts in matches)
        recorded = recorded.append_column(f"match_{name}", pa.array(match))
        recorded = recorded.append_column(f"chance_{name}", pa.array(chance))
    return recorded


EXPERIMENT = Experiment(
    "dynamics",
    dynamics,
    columns=COLUMNS,
    needs=("classes",),
    place=120,
    recorded=True,
    figures=(
        "heedmap.report.dynamics_figures:agreement",
        "heedmap.report.dynamics_figures:texts",
    ),
)
