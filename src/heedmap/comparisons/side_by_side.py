"""The content of a comparison, from which page, frames and JSON are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from heedmap.comparisons.differing_settings import DifferingSetting
from heedmap.comparisons.map_differences import MapDifferences
from heedmap.comparisons.questions import ComparedQuestion
from heedmap.comparisons.seed_rows import Row
from heedmap.comparisons.shown_texts import ShownTexts
from heedmap.comparisons.sources import NamedAudit
from heedmap.comparisons.verdicts import RowVerdict, together
from heedmap.nouns import Nouns, shared_nouns

MOST_DIFFERENT = 5  # texts of two runs that JSON and the page's table name


@dataclass(frozen=True, repr=False)
class SideBySide:
    """Runs side by side.

    Attributes:
        rows: the runs by setting, those of several seeds together.
        settings: the settings that differ, with a text per row.
        questions: each question's numbers, levels and differences, by row, and a sentence.
        verdicts: the bottom lines by row.
        maps: how far the maps of every two runs are apart, text by text.
        texts: the texts that the page draws.
        notes: what to know before comparing: other audit settings, other labels, other texts.
        common: how many texts the runs of two rows share, by the rows' indices.
    """

    rows: Sequence[Row]
    settings: Sequence[DifferingSetting]
    questions: Sequence[ComparedQuestion]
    verdicts: Sequence[RowVerdict]
    maps: Sequence[MapDifferences]
    texts: ShownTexts
    notes: Sequence[str]
    common: Mapping[tuple[int, int], int]

    @cached_property
    def runs(self) -> list[NamedAudit]:
        """All runs, in the order of the rows."""
        return [run for row in self.rows for run in row.runs]

    @cached_property
    def nouns(self) -> Nouns:
        """What the instances of the runs and their items are called: where they differ, instances of items."""
        return shared_nouns([run.audit.nouns for run in self.runs])

    @property
    def summary(self) -> str:
        """The verdicts together, and in how many questions a difference is certain."""
        certain = sum(
            any(difference.certain for difference in question.differences)
            for question in self.questions
        )
        return (
            f"{together(self.rows, self.verdicts)} {certain} of {len(self.questions)} questions have a certain "
            "difference."
        )
