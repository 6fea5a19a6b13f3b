"""The audit: every question asked of a run's attention, in tables, findings and a report."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from heedmap.data.corpus import Split
from heedmap.errors import InputError, KindError, MissingError
from heedmap.experiments import cost
from heedmap.experiments.bottom_line import BottomLine, bottom_line
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.findings import AuditResult, level_text, to_class_frame, to_frame
from heedmap.experiments.notes import far_from_default, note_texts
from heedmap.experiments.rates import FILE as RATES
from heedmap.experiments.rates import Rates, packaged_rates, rates_beside, read_rates
from heedmap.experiments.registry import applicable, column_frame, registered, retrainable
from heedmap.experiments.results import make_findings
from heedmap.experiments.variants import Retraining
from heedmap.files.locking import writing
from heedmap.files.naming import kind_of
from heedmap.files.storage import write_atomically
from heedmap.files.table_folder import TableFolder
from heedmap.keywords import split, takes
from heedmap.models.layered import Layered
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.trace import Model
from heedmap.report.wording import overview_number, source_text
from heedmap.runs.audit_folder import (
    claim_audit,
    keep_tables,
    put_about,
    read_audit,
    write_conclusions,
)
from heedmap.runs.defaults import defaults_for
from heedmap.runs.folder import RunFolder
from heedmap.runs.open import open_run, save_run, weights_of
from heedmap.runs.other_seed import other_seeds
from heedmap.runs.run import Run
from heedmap.settings import AuditSettings, DataSettings, RunSettings
from heedmap.terminal.output import remark, show
from heedmap.terminal.progress import note, plan, step, working

if TYPE_CHECKING:
    import pandas as pd

    from heedmap.report.notebook import Page
    from heedmap.report.notebook_charts import Figures

MAKE_A_RUN = "load, then train, then audit: heedmap.audit(heedmap.train(heedmap.load(data)))"
LONG = 60  # seconds from which a forecast is shown for our own models
MOMENT = 0.2  # seconds of an experiment whose cost is not estimated


@dataclass(frozen=True, repr=False)
class Audit(AuditResult):
    """The result of auditing one run, with `run` itself if it is loaded.

    `kept`: for a run without a folder, the files beside its tables by name.
    """

    run: Run | None = None
    kept: dict[str, bytes] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        judged = [(level_text(f), f) for f in self.findings if f.level != "for comparison"]
        return "\n".join(
            [
                f"Audit of {source_text(self.settings.data.source)}: {self.bottom_line.answer}",
                f"  {self.bottom_line.sentence}",
                *(
                    f"  {text:13} {f.question} {overview_number(f)}, n = {f.n}"
                    for text, f in judged
                ),
                f"  {len(self.findings) - len(judged)} more for comparison; tables: {', '.join(self)}",
            ]
        )

    def _repr_html_(self) -> str:
        from heedmap.report.notebook import card_html

        return card_html(self, self.bottom_line)

    @property
    def bottom_line(self) -> BottomLine:
        """May this map be shown as what the model's answer rests on?"""
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
        """Each finding's number per predicted class, beside that class's own chance, one row each."""
        return to_class_frame(self.findings)

    def __getitem__(self, table: str) -> "pd.DataFrame":
        return self.to_dataframe(table)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def keys(self) -> list[str]:
        """The names of the tables, in their order: `audit[name]` is each as a frame."""
        return list(self.tables)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.tables)

    @property
    def columns(self) -> "pd.DataFrame":
        """What each column of each table means, with its type, and its range or unit."""
        return column_frame(self.tables)

    @cached_property
    def figures(self) -> "Figures":
        """The report's figures as Altair charts, by the names of `heedmap figures --list`."""
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

    def save(self, path: str | Path) -> Path:
        """Write the report, where `path` ends in .html or .htm, or else the whole run folder; returns the path.

        Raises:
            InputError: the place cannot be written, or holds another run.
        """
        from heedmap.report.page import page

        path = Path(path).expanduser()
        if path.suffix in (".html", ".htm"):
            write_atomically(path, page(self))
            return path
        if guess_type(path.name)[0] is not None and not path.is_dir():
            raise InputError(
                f"{path}: expected a name that ends in .html, or that of a folder for the run"
            )
        if self.run is None:
            raise InputError(
                f"{path}: an audit read from tables alone is saved as .html only; copy its folder, or open it "
                "with heedmap.open_run and audit that"
            )
        with writing(path):
            folder = RunFolder(path)
            if self.run.folder is None or path.resolve() != self.run.folder.resolve():
                folder.holds_another(self.settings, overwrite=False)
                save_run(replace(self.run, settings=self.settings), folder)
            keep_tables(self, folder, weights_of(self.run), self._other_files())
            write_conclusions(self, folder)
        return path

    def _other_files(self) -> dict[str, bytes]:
        """Return the files beside the tables, read from the run's folder if it has one."""
        if self.run is None or self.run.folder is None:
            return self.kept
        tables = RunFolder(self.run.folder).tables
        paths = [*tables.glob("*.safetensors"), *tables.glob(RATES)]
        return {path.name: path.read_bytes() for path in paths}


@takes(AuditSettings)
def audit(
    run: Run | str | Path,
    *,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Audit:
    """Put a run's attention on trial, on its test split.

    >>> import heedmap as hm
    >>> run = hm.train(hm.load("reviews"), encoder="average", epochs=1, progress=False)
    >>> audit = hm.audit(run, instances=12, progress=False)
    >>> audit.findings[1].question, audit.findings[1].n
    ('Does the answer need the words that the map highlights?', 12)
    >>> list(audit["sign"].columns)
    ['row', 'predicted', 'against', 'against_chance']

    Args:
        run: from `heedmap.train`, `heedmap.open_model` or `heedmap.open_run`, or a run's folder. Where it has a
            folder, tables are kept there as they are made, and a later call goes on where this one stopped.
        {options}
        overwrite: throw away an audit with other settings instead of refusing.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    What is not given is as a paper has it that audits this data set (`heedmap.runs.defaults`), if there is one.

    Raises:
        InputError: a setting that does not fit, or an audit with other settings or another model in the
            run's folder, or another process that writes there.
        TypeError: no run, or an option that there is not.
    """
    (options,) = split("audit", settings, AuditSettings)
    if isinstance(run, str | Path):
        with working("opening the run", progress):
            run = _run_in(Path(run))
    if not isinstance(run, Run):
        raise KindError(
            f"expected a run or its folder, got {kind_of(run)}; {MAKE_A_RUN}; or make it with "
            "`heedmap.open_model`"
        )
    wanted = AuditSettings.of(**{**defaults(run.model, run.settings.data), **options})
    with working("audit", progress):
        return audit_as(run, wanted, overwrite=overwrite)


def _run_in(path: Path) -> Run:
    if not RunFolder(path).is_begun():
        raise InputError(
            f"{path}: expected a run or its folder, which holds a settings.toml; `heedmap list` shows the "
            f"runs. Of texts, {MAKE_A_RUN}"
        )
    return open_run(path)


def audit_as(
    run: Run,
    wanted: AuditSettings,
    *,
    overwrite: bool = False,
    retraining: Retraining | None = None,
    asked: Collection[str] = (),
    training_seconds: float = 0.0,
) -> Audit:
    """Audit a run with these settings; see `audit`.

    `asked` are experiments that compare further models, which `retraining` trains, in about `training_seconds`.
    Without being asked, those of an earlier call stay.
    """
    run_settings = run.settings.model_copy(update={"audit": wanted})
    others = other_seeds(run, wanted.other_seed or ())

    def made(folder: TableFolder | None) -> Audit:
        split = audited_split(run, wanted)
        evidence = Evidence(
            run.model, split, wanted, folder, others, retraining, asked, run.dynamics
        )
        return _audit(run, run_settings, evidence, dict.fromkeys([*asked][:1], training_seconds))

    if run.folder is None:
        return made(None)
    with writing(run.folder):
        weights = weights_of(run)
        tables = claim_audit(run, run_settings, weights, overwrite)
        result = made(tables)
        with step("report"):
            put_about(result, tables, weights)
            folder = RunFolder(run.folder)
            write_conclusions(result, folder)
            folder.tidy()
        return result


def defaults(model: Model, data: DataSettings) -> dict[str, object]:
    """Return the settings of an audit of a model on such data where no option is given."""
    layered = isinstance(model, Layered)
    return {
        "epsilon": 0.05 if isinstance(model, PairClassifier) else 0.01,
        # For transformers a gradient with the attention of only one layer held fixed means little.
        "gradient_path": "open" if layered else "closed",
        "descent_steps": 0 if layered else 500,
        **defaults_for(data, AuditSettings),
    }


def _audit(
    run: Run, settings: RunSettings, evidence: Evidence, trainings: dict[str, float]
) -> Audit:
    split, wanted, folder = evidence.split, evidence.settings, evidence.folder
    rates = packaged_rates() if run.folder is None else _rates_for(run, folder)  # or refuse at once
    drift_notes = far_from_default(run.facts)
    for caveat in drift_notes:
        remark(f"{run.name}: {caveat}")
    whole = run.corpus.splits["test"]
    names = applicable(run.model, split, evidence.recorded is not None, bool(evidence.other_seeds))
    names += [name for name in retrainable(run.model, split) if evidence.has(name)]
    costs = cost.estimate(evidence)
    is_long = isinstance(run.model, Layered) or sum(costs.values()) >= LONG
    if is_long and (text := cost.forecast(costs)) is not None:
        note(f"The experiments will take {text}.")
    _plan([name for name in names if not evidence.is_kept(name)], costs | trainings)
    tables = {name: evidence.table(name) for name in names}
    about: dict[str, object] = {
        "test_texts": whole.whole_texts,
        "audited": split.whole_texts,
        **({} if split.text_of is None else {"windows": len(split)}),
        **({"class_counts": counts} if (counts := run.corpus.class_counts()) else {}),
        "left_out": run.corpus.left_out,
        **({"also_in": run.corpus.also_in} if run.corpus.also_in else {}),
        **run.facts,
        **_rounding_factors(tables),
    }
    caveats: list[str] = []
    for name in names:
        about |= registered()[name].about(evidence)
        caveats += registered()[name].notes(tables, settings.model)
    for caveat in caveats:
        remark(caveat)
    if notes := [*run.corpus.notes, *note_texts(about), *drift_notes, *caveats]:
        about["notes"] = notes
    findings = make_findings(tables, wanted, run.model.classes, settings.model, rates)
    about = {"name": run.name, **about}
    audited = replace(run, settings=settings)  # what it explains, it explains as it was audited
    return Audit(
        settings, run.model.classes, tables, findings, about, rates, run=audited, kept=evidence.kept
    )


def _plan(names: list[str], costs: dict[str, float]) -> None:
    """Plan the bar: every step takes its forecast, or a moment."""
    weights = {name: max(MOMENT, costs.get(name, 0.0)) for name in [*names, "report"]}
    plan(weights, sum(weights.values()))


def _rates_for(run: Run, tables: TableFolder | None) -> Rates:
    """Return the rates of a calibration of the run's texts, kept with its tables, or else the packaged ones."""
    assert run.folder is not None
    assert tables is not None
    found = rates_beside(run.folder, run.settings.data.source)
    if found is not None:
        tables.put(RATES, found.to_json().encode())
    elif tables.get(RATES) is not None:
        found = read_rates(tables.folder / RATES)
    return found or packaged_rates()


def open_audit(folder: str | Path) -> Audit:
    """Read an audit from the tables in a run folder, without model and corpus.

    >>> import heedmap as hm
    >>> from tempfile import TemporaryDirectory
    >>> corpus = hm.load("reviews")
    >>> with TemporaryDirectory() as out:
    ...     run = hm.train(corpus, encoder="average", epochs=1, out=out, progress=False)
    ...     made = hm.audit(run, instances=6, progress=False)
    ...     read, again = hm.open_audit(out), hm.open_run(out)
    >>> read.findings[0].value == made.findings[0].value, again.training == run.training
    (True, True)

    Raises:
        InputError: no run or no finished audit there, a damaged file, or tables of another model or of
            other settings than the folder holds now.
    """
    kept = read_audit(RunFolder(folder))
    settings, about = kept.settings, kept.about
    assert settings.audit is not None
    rates = kept.rates or packaged_rates()
    findings = make_findings(kept.tables, settings.audit, about.classes, settings.model, rates)
    facts = {"name": Path(folder).name, **about.about}
    return Audit(settings, about.classes, kept.tables, findings, facts, rates)


def rewrite(folder: Path) -> Audit:
    """Write findings and report again from a run folder's tables."""
    run_folder = RunFolder(folder)
    run_folder.settings()
    with writing(folder):
        result = open_audit(folder)
        write_conclusions(result, run_folder)
        run_folder.tidy()
        return result


def _rounding_factors(tables: dict[str, pa.Table]) -> dict[str, list[int]]:
    """Return the thread counts and batch sizes that the tables were made with: they affect rounding."""
    factors = {}
    for name in ("threads", "batch_tokens"):
        values = {(table.schema.metadata or {}).get(name.encode()) for table in tables.values()}
        factors[name] = sorted(int(value) for value in values if value is not None)
    return factors


def audited_split(run: Run, settings: AuditSettings) -> Split:
    """Return the audited texts: the test split, or a seeded sample of it."""
    split = run.corpus.splits["test"]
    if split.whole_texts <= settings.instances:
        return split
    rng = np.random.default_rng([settings.seed, *b"instances"])
    return split.take(split.drawn(rng, settings.instances))
