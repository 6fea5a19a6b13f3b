"""Does the largest weight fall on the last word? An experiment of another package, as an example."""

import altair as alt
import numpy as np

from heedmap.experiments.registry import Experiment
from heedmap.files.tables import table
from heedmap.report.charts import Figure, specification


def last_word(context):
    """The weight of each text's last word."""
    weights = context.table("instances")["attention"].to_pylist()
    return table({"row": range(len(weights)), "last": [values[-1] for values in weights]})


def findings(results):
    last = np.where(results.short, np.nan, results.column("last_word", "last"))
    words = {"question": "Is the last word on its own?", "measure": "mean weight of the last word"}
    short = {"one token: it has all the weight": results.short}
    return [results.finding("last_word", "words", last, short, meaning="1 = all of it", **words)]


def histogram(audit):
    values = audit.tables["last_word"]["last"].to_pylist()
    data = alt.Data(values=[{"weight": value} for value in values])
    chart = alt.Chart(data).mark_bar().encode(alt.X("weight:Q", bin=True), alt.Y("count()"))
    spec = specification(chart, 190)
    return [Figure("last-word", "The last word", f"n = {len(values)}", "Its weight.", spec)]


EXPERIMENT = Experiment(
    "last_word",
    last_word,
    findings=findings,
    figures=("last_word:histogram",),
    facts=lambda row: [("weight of the last word", row["last_word"]["last"])],
)
