"""An audit's files in its run folder: tables, findings and report."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel

from heedmap.errors import InputError
from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.findings import AuditResult, to_json
from heedmap.experiments.methods.adversary_weights import FILE as ADVERSARY
from heedmap.experiments.rates import FILE as RATES
from heedmap.experiments.rates import Rates, read_rates
from heedmap.experiments.registry import registered
from heedmap.files.identity import identity
from heedmap.files.reading import read_bytes
from heedmap.files.table_folder import TableFolder, clear, listed
from heedmap.runs.folder import RunFolder
from heedmap.runs.open import weights_in
from heedmap.runs.run import Run
from heedmap.settings import RunSettings
from heedmap.terminal.output import remark

ABOUT = "about.json"


class About(BaseModel):
    """tables/about.json: what card and report need besides the tables, and the model's hash."""

    classes: list[str]
    tables: list[str]
    about: dict[str, Any]
    weights: str = ""


class Kept(NamedTuple):
    """A finished audit in a folder; `rates` if it has its own."""

    settings: RunSettings
    about: About
    tables: dict[str, pa.Table]
    rates: Rates | None


def read_audit(folder: RunFolder) -> Kept:
    """Read the audit in a run folder.

    Raises:
        InputError: no run or no finished audit there, a damaged file, or tables of another model or of
            other settings than the folder holds now.
    """
    settings, tables, path = folder.settings(), folder.tables, folder.path
    again = f"run `heedmap audit --run {path}`"
    try:
        about = About.model_validate_json(read_bytes(tables / ABOUT))
    except FileNotFoundError as error:
        raise InputError(f"{path}: not audited to the end; {again}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{tables / ABOUT}: damaged; {again} again") from error
    if settings.audit is None:
        raise InputError(f"{path}: not audited to the end; {again}")
    if (manifest := listed(tables)) is None:
        raise InputError(
            f"{tables}: nothing says which model and settings they are of (no manifest.json that can be read, "
            f"as in runs of older versions); {again} again"
        )
    made_of = identity(settings, about.weights, about.classes)
    if manifest[0] != made_of or weights_in(folder, settings) not in (None, about.weights):
        raise InputError(
            f"{tables}: of another model or other settings than {path} holds now; {again} again"
        )
    table_folder = TableFolder(tables, made_of)
    if table_folder.get(ABOUT) is None:
        raise InputError(f"{tables / ABOUT}: not what the audit wrote; {again} again")
    contents = {name: table_folder.table(name) for name in about.tables}
    for name in (name for name, content in contents.items() if content is None):
        file = tables / f"{name}.parquet"
        what = "not what the audit wrote" if file.exists() else "the table is missing"
        raise InputError(f"{file}: {what}; {again} again")
    folder.check_unchanged(settings)
    own = read_rates(tables / RATES) if table_folder.get(RATES) is not None else None
    return Kept(settings, about, contents, own)


def keep_tables(
    result: AuditResult, folder: RunFolder, weights: str, beside: Mapping[str, bytes]
) -> None:
    """Write an audit's tables and the files `beside` them to a run folder, replacing other audits'.

    `weights` is the model's hash.
    """
    folder.take_over(_places(folder))
    tables = folder.tables
    kept = TableFolder(tables, identity(result.settings, weights, result.classes))
    if (manifest := listed(tables)) is None or manifest[0] != kept.identity:
        clear(tables)
    for file, data in beside.items():
        kept.put(file, data)
    for name, content in result.tables.items():
        kept.keep(name, content)
    put_about(result, kept, weights)


def put_about(result: AuditResult, kept: TableFolder, weights: str) -> None:
    """Write what the report needs besides the tables, once all tables are there."""
    about = {name: value for name, value in result.about.items() if name != "name"}
    content = {
        "classes": result.classes,
        "tables": list(result.tables),
        "about": about,
        "weights": weights,
    }
    kept.put(ABOUT, json.dumps(content, indent=1, ensure_ascii=False).encode())


def write_conclusions(result: AuditResult, folder: RunFolder) -> None:
    """Write findings and report."""
    from heedmap.report.page import page

    assert result.rates is not None
    content = {
        "bottom_line": bottom_line(result, result.rates).to_json(),
        "about": result.about,
        "findings": to_json(result.findings),
        "rates": {"rules": result.rates.rules, "name": result.rates.name},
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    folder.write_conclusions(text, page(result))


def claim_audit(run: Run, settings: RunSettings, weights: str, overwrite: bool) -> TableFolder:
    """Return the folder for the tables, with only tables of this audit left in it.

    Raises:
        InputError: the run folder holds another run, another model or, without `overwrite`, an audit with
            other settings. Nothing is written then.
    """
    assert run.folder is not None
    folder, path = RunFolder(run.folder), run.folder
    current = folder.settings(moved=True)
    folder.holds_another(settings, overwrite=False)
    if (current_weights := weights_in(folder, settings)) != weights:
        what = "no model" if current_weights is None else "another model than the one to be audited"
        raise InputError(f"{path}: holds {what}; open the run again, or make it again")
    if current.audit not in (None, settings.audit) and not overwrite:
        changed = "; ".join(current.difference(settings))
        raise InputError(
            f"{path}: holds an audit with other settings ({changed}); use the same settings, "
            "another --out, or insist with --overwrite (in Python overwrite=True)"
        )
    folder.take_over(_places(folder))
    tables, made_of = folder.tables, identity(settings, weights, run.model.classes)
    manifest = listed(tables)
    if current.audit != settings.audit or manifest is None or manifest[0] != made_of:
        if current.audit == settings.audit and any(tables.glob("*.parquet")):
            remark(f"{tables}: not known to be of this model and these settings; computed again")
        folder.remove_conclusions()
        clear(tables)
    folder.write_settings(settings)
    return TableFolder(tables, made_of)


def _places(folder: RunFolder) -> list[str]:
    """Return the names of what an audit may write."""
    names = [*(f"{name}.parquet" for name in registered()), ABOUT, RATES, ADVERSARY]
    tables = folder.tables.name
    return [tables, *(f"{tables}/{name}" for name in names), "findings.json", "report.html"]
