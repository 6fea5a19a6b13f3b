"""The report's figures as Altair charts, with the title, legend and notes that the page has around them."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import altair as alt

from heedmap.errors import MissingError, NamedOnce
from heedmap.experiments.findings import AuditResult
from heedmap.report.charts import Figure
from heedmap.report.figures import figures
from heedmap.report.labelled_charts import CONFIG, labelled_chart
from heedmap.terminal.html import html_table

WIDTH = 460  # pixels


class Chart(alt.LayerChart):
    """A figure with its title, legend and notes.

    It is shown as a picture, because Altair's default renderer fetches its scripts over the network; a renderer
    that the user enabled (`altair.renderers.enable`) is used instead.
    """

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **kwargs)
        with alt.renderers.enable("svg"):
            return super()._repr_mimebundle_(*args, **kwargs)


class Figures(Mapping[str, Chart]):
    """The figures of an audit by name, in the report's order; they are made when first used."""

    def __init__(self, audit: AuditResult) -> None:
        self._audit = audit

    @cached_property
    def _by_key(self) -> dict[str, Figure]:
        return NamedOnce("figures", ((figure.key, figure) for figure in figures(self._audit)))

    def __getitem__(self, name: str) -> Chart:
        if name not in self._by_key:
            raise MissingError(f"no figure {name!r}; there are {', '.join(self._by_key) or 'none'}")
        return chart(self._by_key[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __repr__(self) -> str:
        lines = [f"  {name}: {figure.title} ({figure.n})" for name, figure in self._by_key.items()]
        return "\n".join(["Figures", *lines])

    def _repr_html_(self) -> str:
        rows = [(name, figure.title, figure.n) for name, figure in self._by_key.items()]
        return html_table(rows, ["name", "figure", "n"], "Figures")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


def chart(figure: Figure) -> Chart:
    """Return a figure as an Altair chart."""
    spec = {**labelled_chart(figure, WIDTH), "config": CONFIG}
    layered: Chart = Chart.from_dict(spec)
    return layered
