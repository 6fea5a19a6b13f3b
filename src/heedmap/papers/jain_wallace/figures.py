"""The paper's comparison of data sets and encoders, with the spread over seeds that it does not show."""

from collections.abc import Sequence

from heedmap.papers.jain_wallace.learned import learned
from heedmap.papers.jain_wallace.locations import title_of
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
    numbers = [
        number for result in results for number in result.numbers if number.predicted == "Overall"
    ]
    scores = list(dict.fromkeys(number.cell.score for number in numbers))
    unlike = [
        f"{title_of(number.dataset)} ({', '.join(number.made)})"
        for number in results
        if number.made
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
    cells = dict.fromkeys((number.cell.dataset, number.cell.encoder) for number in numbers)
    references = [(cell, published().get((*cell, score, quantity, "Overall"))) for cell in cells]
    return bars(
        [
            {
                "dataset": title_of(number.cell.dataset),
                "series": number.cell.encoder,
                "seed": number.cell.seed,
                "value": number.value,
            }
            for number in numbers
        ],
        key=f"{key}-{score}",
        title=f"{title} ({score} attention)",
        measure="accuracy" if quantity == "accuracy" else "mean Kendall tau-b",
        none="none right" if quantity == "accuracy" else "no relation",
        caption="Tau: over the audited test texts of one model." if quantity != "accuracy" else "",
        published=[
            {
                "dataset": title_of(dataset),
                "series": encoder,
                "value": number.value,
                "source": SOURCE,
            }
            for (dataset, encoder), number in references
            if number is not None
        ],
    )
