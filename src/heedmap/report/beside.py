"""The names of the pages beside a report, which hold the texts that it has no room for."""

from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import quote


@dataclass(frozen=True)
class PageBeside:
    """One of the pages: its file's name, and which of the texts that are not in the report it holds."""

    name: str
    first: int
    last: int

    @property
    def address(self) -> str:
        """Return the name as an address, in which any sign of a file's name is safe."""
        return quote(self.name)

    @property
    def texts(self) -> str:
        """Return which texts these are, in words."""
        return f"{self.first:,} to {self.last:,}"


def folder_beside(report: str) -> str:
    """Return the folder of the pages beside a report.

    >>> folder_beside("report.html")
    'report-more'
    """
    return f"{PurePath(report).stem}-more"


def pages_beside(rest: int, most: int, report: str) -> list[PageBeside]:
    """Return the pages for the `rest` of the texts, with `most` of them each; none of a report without a name.

    >>> [page.texts for page in pages_beside(7, 5, "report.html")]
    ['1 to 5', '6 to 7']
    """
    if not report:
        return []
    folder = folder_beside(report)
    return [
        PageBeside(f"{folder}/{i // most + 1}.html", i + 1, min(i + most, rest))
        for i in range(0, rest, most)
    ]
