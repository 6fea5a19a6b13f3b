"""docs/columns.md, what the columns of all tables mean: python scripts/columns_page.py"""

from collections.abc import Iterable
from pathlib import Path
from sys import modules

from heedmap.experiments.columns import Columns
from heedmap.experiments.finding_tables import CLASS_COLUMNS as OF_CLASSES
from heedmap.experiments.finding_tables import COLUMNS as OF_FINDINGS
from heedmap.experiments.registry import registered, retrains

HEAD = """# What the columns mean

`audit["adversary"]` is the table `adversary` of an audit as a pandas frame, and `audit.columns` describes the
columns of all its tables as below. The files are `tables/*.parquet` in a run's folder. `audit.to_dataframe()`
is the table of [findings](#findings), one row per question, and `audit.by_class` has their numbers per
[predicted class](#by-class).

A class is its number in `audit.classes`. Logarithms are natural. JSD is the Jensen-Shannon divergence, at most
ln 2; a change of a prediction is the total variation distance (TVD), half the sum of the absolute differences.
ε is `--epsilon`. `{measure}` in a name stands for each of the words that are listed below the table.

This page is made by `scripts/columns_page.py` from what each experiment says of its own table.
"""


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for name, experiment in registered().items():
        question = (modules[experiment.run.__module__].__doc__ or "").splitlines()[0]
        also = " Asked by `heedmap retrain`." if retrains(name) else ""
        parts.append(f"## {name}\n\n{question}{also}\n\n{section(experiment.columns)}")
    parts.append(f"## findings\n\n`audit.to_dataframe()`\n\n{section(OF_FINDINGS)}")
    parts.append(f"## by class\n\n`audit.by_class`\n\n{section(OF_CLASSES)}")
    return "\n".join(parts)


def section(columns: Columns) -> str:
    """Return a table of columns, and below it what the families' parts stand for."""
    rows = [(f"`{one.name}`", one.range, one.meaning) for one in columns.described]
    text = f"{columns.rows}\n\n{table(('column', 'range or unit', 'meaning'), rows)}"
    for part, words in columns.values.items():
        listed = "; ".join(
            f"`{name}`" if name == word else f"`{name}` {word}" for name, word in words.items()
        )
        text += f"\n`{{{part}}}`: {listed}.\n"
    return text


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


if __name__ == "__main__":
    Path("docs/columns.md").write_text(page(), encoding="utf-8")
