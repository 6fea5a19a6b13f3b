"""The result of auditing one run: its tables, findings and answer, to look at and to save."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING

from heedmap.errors import InputError, MissingError
from heedmap.experiments.bottom_line import BottomLine, bottom_line
from heedmap.experiments.finding_tables import to_class_frame, to_frame
from heedmap.experiments.findings import AuditResult, level_text
from heedmap.experiments.rates import FILE as RATES
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.registry import column_frame
from heedmap.files.locking import writing
from heedmap.report.wording import overview_number, source_text
from heedmap.runs.audit_folder import conclude, keep_tables
from heedmap.runs.folder import RunFolder
from heedmap.runs.occupancy import holds_another
from heedmap.runs.run import Run
from heedmap.runs.saved_report import save_report
from heedmap.runs.saving import save_run
from heedmap.runs.stored_models import weights_of
from heedmap.terminal.output import show

if TYPE_CHECKING:
    import pandas as pd

    from heedmap.report.notebook import Page
    from heedmap.report.notebook_charts import Figures


@dataclass(frozen=True, repr=False)
class Audit(AuditResult):
    """The result of auditing one run, with `run` itself if it is loaded.

    `kept`: for a run without a folder, the files beside its tables by name.
    """

    run: Run | None = None
    kept: dict[str, bytes] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        graded = [(level_text(f), f) for f in self.findings if f.level != "for comparison"]
        return "\n".join(
            [
                f"Audit of {source_text(self.settings.data.source)}: {self.bottom_line.answer}",
                f"  {self.bottom_line.sentence}",
                *(
                    f"  {text:13} {f.question} {overview_number(f)}, n = {f.n}"
                    for text, f in graded
                ),
                f"  {len(self.findings) - len(graded)} more for comparison; tables: {', '.join(self)}",
            ]
        )

    def _repr_html_(self) -> str:
        from heedmap.report.notebook import card_html

        return card_html(self, self.bottom_line)

    @property
    def bottom_line(self) -> BottomLine:
        """Return the one answer: may this map be shown as what the model's answer rests on?"""
        return bottom_line(self, self.rates or packaged_rates())

    def to_dataframe(self, table: str | None = None) -> "pd.DataFrame":
        """Return one table as a pandas frame, or the findings, one row per question.

        What the columns mean is in `columns`, and for all tables in docs/columns.md.

        Raises:
            InputError: no such table.
        """
        if table is None:
            return to_frame(self.findings)
        if table not in self.tables:
            raise MissingError(f"no table {table!r}; there are {', '.join(self.tables)}")
        frame: pd.DataFrame = self.tables[table].to_pandas()
        return frame

    @property
    def by_class(self) -> "pd.DataFrame":
        """Return each finding's number per predicted class, beside that class's chance, one row each."""
        return to_class_frame(self.findings)

    def __getitem__(self, table: str) -> "pd.DataFrame":
        return self.to_dataframe(table)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def keys(self) -> list[str]:
        """Return the names of the tables, in their order: `audit[name]` is each as a frame."""
        return list(self.tables)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.tables)

    @property
    def columns(self) -> "pd.DataFrame":
        """Return what each column of each table means, with its type, and its range or unit."""
        return column_frame(self.tables)

    @cached_property
    def figures(self) -> "Figures":
        """Return the report's figures as Altair charts, by the names of `heedmap figures --list`."""
        from heedmap.report.notebook_charts import Figures

        return Figures(self)

    def page(self) -> "Page":
        """Return the report, which a notebook shows in a frame: 1 MB or more of HTML."""
        from heedmap.report.notebook import Page

        return Page(self)

    def show(self) -> None:
        """Print the verdict card."""
        from heedmap.report.card import card

        show(card(self))

    @property
    def maps(self) -> "pd.DataFrame":
        """Return all maps of all texts: a row per text and token, and a column per map that the tables hold.

        The same as `heedmap export` writes as `maps`; a map is missing where a text has none.

        >>> import heedmap as hm
        >>> run = hm.train(hm.load("reviews"), encoder="average", epochs=1, progress=False)
        >>> hm.audit(run, instances=6, progress=False).maps.columns[:5].tolist()
        ['id', 'row', 'position', 'token', 'attention']
        """
        from heedmap.report.token_maps import token_maps

        frame: pd.DataFrame = token_maps(self).to_pandas()
        return frame

    def export(
        self,
        out: str | Path,
        file_format: str | None = None,
        *,
        texts: bool = True,
        overwrite: bool = False,
    ) -> list[Path]:
        """Write findings, maps and tables to files for other programs; return the paths.

        Args:
            out: a folder for a file per table, or a file: .csv, .jsonl or .parquet for the findings alone,
                .xlsx for everything.
            file_format: "csv", "jsonl", "xlsx" or "parquet"; by default as `out` ends, or csv.
            texts: False to leave out tokens, texts, queries and ids.
            overwrite: replace files of another content that heedmap wrote there.

        Raises:
            InputError: an unknown format, or files that are not to be replaced; the place cannot be written.
        """
        from heedmap.runs.table_export import export

        return export(self, out, file_format, texts=texts, overwrite=overwrite)

    def save(self, path: str | Path, *, texts: bool = True) -> Path:
        """Write the report, the findings, or else the whole run folder, by how `path` ends; return the path.

        * .html, .htm: the report; of more than 5,000 texts, also the others, in the folder NAME-more beside it.
        * .csv, .jsonl, .parquet: the findings, a row per question, as `to_dataframe` has them.
        * .xlsx: findings, maps and tables, a sheet each. `export` writes these as csv, jsonl or parquet.
        * anything else: the run folder.

        An existing file is replaced. With `texts=False` no token, text, query or id stands in the file; a run
        folder cannot be without.

        Raises:
            InputError: `path` cannot be written, or holds another run.
        """
        from heedmap.report.anonymous import without_texts
        from heedmap.runs.export_place import FORMATS, place_of

        path = Path(path).expanduser()
        if path.suffix.lower() in (".html", ".htm"):
            save_report(self if texts else without_texts(self), path)
            return path
        if path.suffix.lower().removeprefix(".") in FORMATS:
            if place_of(path).is_file:
                self.export(path, texts=texts, overwrite=True)
                return path
            if not RunFolder(path).is_begun():
                raise InputError(
                    f"{path}: expected a place for a file, found a folder; remove it, or choose another name"
                )
        elif guess_type(path.name)[0] is not None and not path.is_dir():
            endings = ", ".join(f".{file_format}" for file_format in FORMATS)
            raise InputError(
                f"{path}: expected a name that ends in .html, {endings}, or that of a folder for the run"
            )
        if not texts:
            raise InputError(
                f"{path}: a run folder holds the texts; name a file (.html, .xlsx), or leave texts=False out"
            )
        if self.run is None:
            raise InputError(
                f"{path}: an audit read from tables alone is saved as a file only, such as .html; copy its "
                "folder, or open it with heedmap.open_run and audit that"
            )
        with writing(path):
            folder = RunFolder(path)
            if self.run.folder is None or path.resolve() != self.run.folder.resolve():
                holds_another(folder, self.settings, overwrite=False)
                save_run(replace(self.run, settings=self.settings), folder)
            weights = weights_of(self.run.model, self.run.settings)
            keep_tables(self, folder, weights, self._files_beside())
            conclude(self, folder)
        return path

    def _files_beside(self) -> dict[str, bytes]:
        """Return the files beside the tables, read from the run's folder if it has one."""
        if self.run is None or self.run.folder is None:
            return self.kept
        tables = RunFolder(self.run.folder).tables
        paths = [*tables.glob("*.safetensors"), *tables.glob(RATES)]
        return {path.name: path.read_bytes() for path in paths}
