"""The result of comparing runs, to look at and to save."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedmap.comparisons.map_differences import MapDifferences
from heedmap.comparisons.questions import ComparedQuestion
from heedmap.comparisons.side_by_side import MOST_DIFFERENT, SideBySide
from heedmap.errors import MissingError
from heedmap.files.naming import page_path
from heedmap.files.overwriting import refuse_data, write_file
from heedmap.files.storage import encoded
from heedmap.terminal.html import escaped, html_table
from heedmap.terminal.output import cell, show

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
ORDERS = "Certain differences; the page has their intervals:"


class Comparison(SideBySide):
    """Runs side by side, to look at and to save."""

    def __repr__(self) -> str:
        lines = [
            f"  {row.title}: {verdict.answer}"
            for row, verdict in zip(self.rows, self.verdicts, strict=True)
        ]
        return "\n".join([f"Comparison of {len(self.runs)} runs: {self.summary}", *lines])

    def _repr_html_(self) -> str:
        head = ["question", *(row.title for row in self.rows), "differences"]
        cells = [
            (question.topic, *(answer.text for answer in question.answers), question.sentence)
            for question in self.questions
        ]
        lines = "".join(
            f"<div><b>{escaped(row.title)}</b>: {escaped(' '.join(verdict.sentences))} "
            f"{escaped(verdict.sentence)}</div>"
            for row, verdict in zip(self.rows, self.verdicts, strict=True)
        )
        notes = "".join(f"<div>Note: {escaped(note)}</div>" for note in self.notes)
        return f"<div><b>{escaped(self.summary)}</b></div>{lines}{notes}{html_table(cells, head)}"

    def to_dataframe(self, table: str = "questions") -> "pd.DataFrame":
        """Return one of the tables as a pandas frame.

        Args:
            table: questions (a row per question and setting), differences (per question and two settings),
                settings (per setting that differs), or maps (per text and two runs).

        Raises:
            InputError: no such table.
        """
        import pandas as pd

        content = self.to_json(texts=None)
        frames = {
            "questions": [
                {"key": question["key"], **answer}
                for question in content["questions"]
                for answer in question["answers"]
            ],
            "differences": [
                {"key": question["key"], **difference}
                for question in content["questions"]
                for difference in question["differences"]
            ],
            "settings": [
                {"setting": setting["name"], **setting["values"]} for setting in content["settings"]
            ],
            "maps": [
                {"first": pair["first"], "second": pair["second"], **text}
                for pair in content["maps"]
                for text in pair["texts"]
            ],
        }
        if table not in frames:
            raise MissingError(f"no table {table!r}; there are {', '.join(frames)}")
        return pd.DataFrame(frames[table])

    def to_json(self, texts: int | None = MOST_DIFFERENT) -> dict[str, Any]:
        """Return everything but the maps themselves as values of JSON; undefined numbers are NaN.

        Args:
            texts: of every two runs, how many texts on which their maps differ most; None for all.
        """
        return {
            "schema": SCHEMA,
            "summary": self.summary,
            "notes": [*self.notes],
            "rows": [
                {
                    "row": row.letter,
                    "name": row.name,
                    "runs": [run.name for run in row.runs],
                    "answers": [line.answer for line in verdict.lines],
                    "sentence": verdict.line.sentence,
                    "sentences": [*verdict.sentences],
                    "over_seeds": verdict.sentence,
                }
                for row, verdict in zip(self.rows, self.verdicts, strict=True)
            ],
            "settings": [
                {
                    "name": setting.name,
                    "values": {
                        row.letter: value
                        for row, value in zip(self.rows, setting.values, strict=True)
                    },
                }
                for setting in self.settings
            ],
            "common_texts": [
                {"first": self.rows[i].letter, "second": self.rows[j].letter, "texts": count}
                for (i, j), count in self.common.items()
            ],
            "questions": [self._question_json(question) for question in self.questions],
            "maps": [self._map_json(pair, texts) for pair in self.maps],
        }

    def _question_json(self, question: ComparedQuestion) -> dict[str, Any]:
        finding = question.finding
        return {
            "key": question.key,
            "question": finding.question,
            "topic": question.topic,
            "measure": finding.measure,
            "sentence": question.sentence,
            "answers": [
                {"row": row.letter, **vars(answer)}
                for row, answer in zip(self.rows, question.answers, strict=True)
            ],
            "differences": [
                {
                    **vars(difference),
                    "first": self.rows[difference.first].letter,
                    "second": self.rows[difference.second].letter,
                    "certain": difference.certain,
                }
                for difference in question.differences
            ],
        }

    def _map_json(self, pair: MapDifferences, texts: int | None) -> dict[str, Any]:
        names = {text["id"]: text["name"] for text in self.texts.texts}
        return {
            "first": self.runs[pair.first].name,
            "second": self.runs[pair.second].name,
            "mean_distance": pair.mean,
            "n": len(pair.distances),
            "skipped": dict(pair.skipped),
            "texts": [
                {"text": text, "name": names.get(text, ""), "distance": distance}
                for text, distance in [*pair.distances.items()][:texts]
            ],
        }

    def show(self) -> None:
        """Print the verdicts, the settings that differ, the questions, and which differences are certain.

        Their intervals, and what is not certain, stand on the page and in `to_dataframe("differences")`.
        """
        from rich.box import SIMPLE_HEAD
        from rich.console import RenderableType
        from rich.table import Table

        settings, questions = (Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0)) for _ in range(2))
        for table, first in ((settings, "setting"), (questions, "question")):
            table.add_column(first, min_width=14)
            for row in self.rows:
                table.add_column(row.letter)
        for setting in self.settings:
            settings.add_row(cell(setting.name), *map(cell, setting.values))
        for question in self.questions:
            questions.add_row(
                cell(question.topic), *(cell(answer.text) for answer in question.answers)
            )
        parts: list[RenderableType] = [cell(self.summary, style="bold")]
        for row, verdict in zip(self.rows, self.verdicts, strict=True):
            parts += [cell(row.title, style="bold"), *map(cell, verdict.sentences)]
            if len(verdict.lines) > 1:
                parts.append(cell(verdict.sentence))
        if all(len(verdict.lines) == 1 for verdict in self.verdicts):
            parts.append(cell("Each row is one seed: other seeds were not compared."))
        parts += [cell(f"Note: {note}") for note in self.notes]
        parts += [settings, questions]
        if orders := [f"{q.topic}: {found}" for q in self.questions if (found := self._orders(q))]:
            parts += [cell(ORDERS, style="bold"), *map(cell, orders)]
        show(*parts)

    def _orders(self, question: ComparedQuestion) -> str:
        """Return the rows of which one is certainly above the other, such as "A > C, B > C"."""
        orders = []
        for difference in question.differences:
            if difference.certain:
                first, second = (self.rows[i].letter for i in (difference.first, difference.second))
                orders.append(f"{first} {'>' if difference.value > 0 else '<'} {second}")
        return ", ".join(orders)

    def save(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """Write the page to a file that ends in .html; return the path.

        Args:
            path: of the file.
            overwrite: replace a file of another content, but never one that texts were read from.

        Raises:
            InputError: another ending, a file that is not to be replaced, or a place that cannot be written.
        """
        from heedmap.comparisons.comparison_page import page

        path = page_path(path)
        for run in self.runs:
            refuse_data(path, run.audit.settings.data.source)
        write_file(path, encoded(page(self)), overwrite)
        return path
