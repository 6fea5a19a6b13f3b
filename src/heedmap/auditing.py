"""The audit: every question asked of a run's attention, in tables, findings and a report."""

import json
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.experiments.adversary import adversary
from heedmap.experiments.adversary_weights import FILE, rows_kept
from heedmap.experiments.agreement import agreement
from heedmap.experiments.cost import estimate, told
from heedmap.experiments.evidence import Announce, Evidence, Experiment
from heedmap.experiments.importance import gradient, integrated, leave_one_out
from heedmap.experiments.instances import instances
from heedmap.experiments.layers import heads, scan
from heedmap.experiments.permutation import permutation
from heedmap.experiments.rationale import rationale
from heedmap.findings import Conclusions, to_json
from heedmap.folders import claim, settings_of
from heedmap.models.layered import Layered
from heedmap.models.trace import Model
from heedmap.questions import make_findings
from heedmap.report.words import drift_text
from heedmap.run import Run
from heedmap.runs import save_run
from heedmap.settings import AuditSettings, RunSettings
from heedmap.storage import write_atomically
from heedmap.tables import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd

EXPERIMENTS: dict[str, Experiment] = {
    "instances": instances,
    "gradient": gradient,
    "leave_one_out": leave_one_out,
    "integrated_gradients": integrated,
    "agreement": agreement,
    "permutation": permutation,
    "adversary": adversary,
    "rationale": rationale,
    "scan": scan,
    "heads": heads,
}


ABOUT = "about.json"


@dataclass(frozen=True)
class Audit(Conclusions):
    """The conclusions on one run, `run` itself where it is at hand.

    `kept` are files beside the tables by name, of a run without a folder.
    """

    run: Run | None = None
    kept: dict[str, bytes] = field(default_factory=dict, repr=False)

    def to_dataframe(self, table: str) -> "pd.DataFrame":
        """One table as a pandas frame, one row an instance.

        Raises:
            InputError: no such table.
        """
        if table not in self.tables:
            raise InputError(f"no table {table!r}; there are {', '.join(self.tables)}")
        frame: pd.DataFrame = self.tables[table].to_pandas()
        return frame

    def show(self) -> None:
        """Print the verdict card."""
        from rich.console import Console

        from heedmap.report.card import card

        Console().print(card(self))

    def save(self, path: str | Path) -> Path:
        """Write the report, where `path` ends in .html, or else the whole run folder; returns the path.

        Raises:
            InputError: the place cannot be written, or holds another run.
        """
        from heedmap.report.page import page

        path = Path(path)
        if path.suffix == ".html":
            write_atomically(path, page(self))
            return path
        if self.run is None:
            raise InputError(f"{path}: an audit read from tables alone is saved as .html only")
        if self.run.folder is None or path.resolve() != self.run.folder.resolve():
            claim(path, self.settings, overwrite=False)
            save_run(replace(self.run, settings=self.settings), path)
        for file, content in self._beside().items():
            write_atomically(path / "tables" / file, content)
        for name, table in self.tables.items():
            write_table(path / "tables" / f"{name}.parquet", table)
        _write_about(self, path)
        _write_conclusions(self, path)
        return path

    def _beside(self) -> dict[str, bytes]:
        """The files beside the tables, from the run's folder where it has one."""
        if self.run is None or self.run.folder is None:
            return self.kept
        there = (self.run.folder / "tables").glob("*.safetensors")
        return {path.name: path.read_bytes() for path in there}


def audit(
    run: Run,
    *,
    seed: int = 0,
    instances: int = 2000,
    permutations: int = 100,
    epsilon: float | None = None,
    leave_one_out: str = "remove",
    gradient_path: str | None = None,
    gradient_of: str | None = None,
    gradient_form: str = "times-input",
    overwrite: bool = False,
    announce: Announce = lambda name: None,
    forecast: Announce = lambda text: None,
) -> Audit:
    """Put a run's attention on trial, on its test split.

    Args:
        run: from `heedmap.train` or `heedmap.open_run`. Where it has a folder, tables are kept there as
            they are made, and a later call goes on where this one stopped.
        seed: of the experiments that draw at random.
        instances: at most this many test texts, a seeded sample; the report says so.
        permutations: shuffles of each text's weights.
        epsilon: the total variation distance within which a prediction counts as the same; by default the
            paper's, .01, and .05 for pairs of texts (and where the corpus was read by the code's rules).
        leave_one_out: "remove" a word, or "mask" it.
        gradient_path, gradient_of, gradient_form: which gradient (see `heedmap.importance.gradients`);
            "closed" for our own models, "open" for transformers, of the "log-odds" (of the "probability"
            by the code's rules), "times-input".
        overwrite: throw away an audit with other settings instead of refusing.
        announce: called with the name of each experiment as it starts.
        forecast: called once with what it will cost, for a model that has no shortcuts.

    Raises:
        InputError: a setting that does not fit, or an audit with other settings in the run's folder.
    """
    layered, code = isinstance(run.model, Layered), run.settings.data.rules == "code"
    wanted = AuditSettings.of(
        seed=seed,
        instances=instances,
        permutations=permutations,
        epsilon=(0.05 if code or run.corpus.pairs else 0.01) if epsilon is None else epsilon,
        leave_one_out=leave_one_out,
        # Transformers: a gradient with the attention of one layer of many held fixed has no reader.
        gradient_path=gradient_path or ("open" if layered else "closed"),
        gradient_of=gradient_of or ("probability" if code else "log-odds"),
        gradient_form=gradient_form,
        descent_steps=0 if layered else 500,
    )
    settings = run.settings.model_copy(update={"audit": wanted})
    # Not refused: every number is true of the model with its own file's attention, which half precision
    # alone moves. But it may not be the model that is deployed, and only its owner knows.
    if (drift := drift_text(run.facts, above=True)) is not None:
        warnings.warn(
            f"{run.name}: {drift}; deploy it with attn_implementation='eager', or expect other numbers",
            stacklevel=2,
        )
    folder = None
    if run.folder is not None:
        folder = run.folder / "tables"
        _claim_audit(run.folder, settings, overwrite)
    whole, split = run.corpus.splits["test"], audited_split(run, wanted)
    files = {"adversary": [FILE]} if layered else {}
    evidence = Evidence(run.model, split, wanted, EXPERIMENTS, folder, announce, files)
    names = applicable(run.model, split)
    if isinstance(run.model, Layered) and (text := told(estimate(evidence))) is not None:
        forecast(text)
    tables = {name: evidence.table(name) for name in names}
    about: dict[str, object] = {
        "test_texts": len(whole),
        "audited": len(split),
        "left_out": run.corpus.left_out,
        **run.facts,
    }
    if layered:
        about["adversary_weights"] = _weights_kept(evidence)
    findings = make_findings(tables, wanted, run.model.classes, settings.model)
    named = {"name": run.name, **about}
    result = Audit(settings, run.model.classes, tables, findings, named, run, evidence.kept)
    if run.folder is not None:
        announce("report")
        _write_about(result, run.folder)
        _write_conclusions(result, run.folder)
    return result


def _weights_kept(evidence: Evidence) -> dict[str, int]:
    """Of how many texts that were searched the adversary's weights are kept."""
    there = evidence.folder
    file = evidence.kept[FILE] if there is None else there / FILE
    searched = evidence.table("adversary")["jsd"]
    return {"kept": len(rows_kept(file)), "searched": len(searched) - searched.null_count}


def applicable(model: Model, split: Split) -> list[str]:
    """The experiments that can be made of this model and these texts, in order."""
    missing = set()
    if split.rationale is None:
        missing.add("rationale")
    if not isinstance(model, Layered):
        missing |= {"scan", "heads"}
    return [name for name in EXPERIMENTS if name not in missing]


def open_audit(folder: str | Path) -> Audit:
    """An audit from the tables in a run folder: no model, no corpus.

    Raises:
        InputError: no run or no finished audit there, or a damaged file.
    """
    folder = Path(folder)
    settings = settings_of(folder)
    again = f"run `heedmap audit --run {folder}`"
    try:
        kept = json.loads((folder / "tables" / ABOUT).read_text(encoding="utf-8"))
        classes, names = kept["classes"], kept["tables"]
        about = {"name": folder.name, **kept["about"]}
    except FileNotFoundError as error:
        raise InputError(f"{folder}: not audited to the end; {again}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / 'tables' / ABOUT}: damaged; {again} again") from error
    tables = {}
    for name in names:
        path = folder / "tables" / f"{name}.parquet"
        if not path.exists():
            raise InputError(f"{path}: the table is missing; {again} again")
        tables[name] = read_table(path)
    if settings.audit is None:
        raise InputError(f"{folder}: not audited to the end; {again}")
    findings = make_findings(tables, settings.audit, classes, settings.model)
    return Audit(settings, classes, tables, findings, about)


def rewrite(folder: Path) -> Audit:
    """Findings and report anew from a run folder's tables."""
    result = open_audit(folder)
    _write_conclusions(result, folder)
    return result


def _write_about(result: Audit, folder: Path) -> None:
    """What the report needs beside the tables; written once all tables are there."""
    about = {name: value for name, value in result.about.items() if name != "name"}
    content = {"classes": result.classes, "tables": list(result.tables), "about": about}
    write_atomically(folder / "tables" / ABOUT, json.dumps(content, indent=1, ensure_ascii=False))


def _write_conclusions(result: Audit, folder: Path) -> None:
    from heedmap.report.page import page

    content = {"about": result.about, "findings": to_json(result.findings)}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / "findings.json", text)
    write_atomically(folder / "report.html", page(result))


def _claim_audit(folder: Path, settings: RunSettings, overwrite: bool) -> None:
    found = RunSettings.read(folder / "settings.toml")
    if found.audit != settings.audit:
        changed = "; ".join(found.difference(settings))
        if found.audit is not None and not overwrite:
            raise InputError(
                f"{folder}: holds an audit with other settings ({changed}); use the same settings, "
                "another --out, or insist with --overwrite"
            )
        tables = folder / "tables"
        told = (folder / "findings.json", folder / "report.html")
        made = (*tables.glob("*.parquet"), *tables.glob("*.safetensors"))
        for path in (*told, *made, tables / ABOUT):
            path.unlink(missing_ok=True)
    write_atomically(folder / "settings.toml", settings.to_toml())


def audited_split(run: Run, settings: AuditSettings) -> Split:
    """The texts that are audited: the test split, or a seeded sample of it."""
    split = run.corpus.splits["test"]
    if len(split) <= settings.instances:
        return split
    rng = np.random.default_rng([settings.seed, *b"instances"])
    return split.take(np.sort(rng.permutation(len(split))[: settings.instances]))
