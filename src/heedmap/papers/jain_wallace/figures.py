"""The paper's comparison of data sets and encoders, with the spread over seeds that it does not show."""

from collections.abc import Sequence

from heedmap.data.catalog import CATALOG
from heedmap.papers.jain_wallace.learned import learned
from heedmap.papers.jain_wallace.log_odds_figures import log_odds_figures
from heedmap.papers.jain_wallace.measures import Measured
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import SOURCE, published
from heedmap.papers.kit.result import with_unlike
from heedmap.report.charts import Figure
from heedmap.report.grid_figures import bars

DRAWN = (
    ("accuracy", "accuracy", "Accuracy on the test split"),
    ("attention~gradient", "gradient", "Does attention rank the words as the gradient does?"),
    ("attention~leave_one_out", "leave-one-out", "Does attention rank the words as leave-one-out does?"),
    ("gradient~leave_one_out", "yardstick", "For scale: do gradient and leave-one-out rank them alike?"),
)  # fmt: skip


def figures(results: Sequence[DatasetNumbers]) -> list[Figure]:
    """Draw bars by data set and encoder, one figure per quantity and score; then attention beside log-odds."""
    numbers = [one for result in results for one in result.numbers if one.predicted == "Overall"]
    scores = list(dict.fromkeys(one.cell.score for one in numbers))
    unlike = [
        f"{CATALOG[one.dataset].title} ({', '.join(one.made)})" for one in results if one.made
    ]
    failed = learned(results).failed
    compared = [
        with_unlike(
            _bars(
                [n for n in numbers if n.quantity == quantity and n.cell.score == score], key, title
            ),
            unlike,
            [name for name in failed if name.endswith(f" {score}")],
        )
        for quantity, key, title in DRAWN
        for score in scores
        if any(n.quantity == quantity and n.cell.score == score for n in numbers)
    ]
    return [*compared, *log_odds_figures(results)]


def _bars(numbers: Sequence[Measured], key: str, title: str) -> Figure:
    score, quantity = numbers[0].cell.score, numbers[0].quantity
    cells = dict.fromkeys((one.cell.dataset, one.cell.encoder) for one in numbers)
    references = [(cell, published().get((*cell, score, quantity, "Overall"))) for cell in cells]
    return bars(
        [
            {
                "dataset": CATALOG[one.cell.dataset].title,
                "series": one.cell.encoder,
                "seed": one.cell.seed,
                "value": one.value,
            }
            for one in numbers
        ],
        key=f"{key}-{score}",
        title=f"{title} ({score} attention)",
        measure="accuracy" if quantity == "accuracy" else "mean Kendall tau-b",
        none="none right" if quantity == "accuracy" else "no relation",
        caption="Tau: over the audited test texts of one model." if quantity != "accuracy" else "",
        published=[
            {
                "dataset": CATALOG[dataset].title,
                "series": encoder,
                "value": one.value,
                "source": SOURCE,
            }
            for (dataset, encoder), one in references
            if one is not None
        ],
    )
