"""An audit's files in its run folder: tables, findings and report."""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel

from heedmap.errors import InputError
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods.adversary_weights import FILE as ADVERSARY
from heedmap.experiments.rates import FILE as RATES
from heedmap.experiments.rates import Rates, read_rates
from heedmap.experiments.reading import FOLDER as DRAWN
from heedmap.experiments.registry import registered
from heedmap.files.identity import identity
from heedmap.files.reading import read_bytes
from heedmap.files.table_folder import TableFolder, clear, listed
from heedmap.runs.conclusions import remove_conclusions, write_conclusions, write_report
from heedmap.runs.findings_file import findings_of
from heedmap.runs.folder import RunFolder
from heedmap.runs.occupancy import holds_another
from heedmap.runs.stored_models import weights_in
from heedmap.settings.audit import AuditSettings
from heedmap.settings.run import RunSettings
from heedmap.terminal.output import remark

ABOUT = "about.json"


class About(BaseModel):
    """tables/about.json: what card and report need besides the tables, and the model's hash."""

    classes: list[str]
    tables: list[str]
    about: dict[str, Any]
    weights: str = ""


class StoredAudit(NamedTuple):
    """A finished audit in a folder; `rates` if it has its own."""

    settings: RunSettings
    about: About
    tables: dict[str, pa.Table]
    rates: Rates | None


def read_audit(folder: RunFolder) -> StoredAudit:
    """Read the audit in a run folder.

    Raises:
        InputError: no run or no finished audit there, a damaged file, or tables of another model or of
            other settings than the folder holds now.
    """
    settings, tables, path = folder.settings(), folder.tables, folder.path
    again = f"run `heedmap audit --run {path}`"
    try:
        description = About.model_validate_json(read_bytes(tables / ABOUT))
    except FileNotFoundError as error:
        raise InputError(f"{path}: not audited to the end; {again}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{tables / ABOUT}: damaged; {again} again") from error
    if settings.audit is None:
        raise InputError(f"{path}: not audited to the end; {again}")
    if (manifest := listed(tables)) is None:
        raise InputError(
            f"{tables}: the manifest does not say which model and settings they are of; {again} again"
        )
    made_of = identity(settings, description.weights, description.classes)
    if manifest[0] != made_of or weights_in(folder, settings) not in (None, description.weights):
        raise InputError(
            f"{tables}: of another model or other settings than {path} holds now; {again} again"
        )
    table_folder = TableFolder(tables, made_of)
    if table_folder.get(ABOUT) is None:
        raise InputError(f"{tables / ABOUT}: not what the audit wrote; {again} again")
    contents = {name: table_folder.table(name) for name in description.tables}
    for name in (name for name, content in contents.items() if content is None):
        file = tables / f"{name}.parquet"
        problem = "not what the audit wrote" if file.exists() else "the table is missing"
        raise InputError(f"{file}: {problem}; {again} again")
    folder.check_unchanged(settings)
    rates = read_rates(tables / RATES) if table_folder.get(RATES) is not None else None
    return StoredAudit(settings, description, contents, rates)


def keep_tables(
    result: AuditResult, folder: RunFolder, weights: str, files_beside: Mapping[str, bytes]
) -> None:
    """Write an audit's tables and the files `files_beside` them to a run folder, replacing other audits'.

    `weights` is the model's hash.
    """
    folder.manifest.refuse_taken(_audit_files(folder))
    tables = TableFolder(folder.tables, identity(result.settings, weights, result.classes))
    if (manifest := listed(folder.tables)) is None or manifest[0] != tables.identity:
        clear(folder.tables)
    for file, data in files_beside.items():
        tables.put(file, data)
    for name, content in result.tables.items():
        tables.keep(name, content)
    put_about(result, tables, weights)


def put_about(result: AuditResult, tables: TableFolder, weights: str) -> None:
    """Write what the report needs besides the tables, once all tables are there."""
    facts = {name: value for name, value in result.about.items() if name != "name"}
    content = {
        "classes": result.classes,
        "tables": list(result.tables),
        "about": facts,
        "weights": weights,
    }
    tables.put(ABOUT, json.dumps(content, indent=1, ensure_ascii=False).encode())


def conclude(result: AuditResult, folder: RunFolder) -> None:
    """Write findings.json, report.html and the pages beside it of a finished audit."""
    from heedmap.report.page import pages

    text = json.dumps(findings_of(result), indent=1, ensure_ascii=False, allow_nan=False)
    write_conclusions(folder, text, dict(pages(result, folder.report.name)))


def write_without_texts(result: AuditResult, folder: RunFolder) -> None:
    """Write a report that holds no text, and the pages beside it, beside the one that does."""
    from heedmap.report.anonymous import without_texts
    from heedmap.report.page import pages

    report = folder.report_without_texts
    write_report(folder, report, dict(pages(without_texts(result), report.name)))


def claim_audit(
    folder: RunFolder, settings: RunSettings, weights: str, classes: list[str], overwrite: bool
) -> TableFolder:
    """Return the folder for the tables of an audit with these settings, with only its own tables left in it.

    `weights` is the hash of the model that is audited, `classes` are its classes.

    Raises:
        InputError: the run folder holds another run, another model or, without `overwrite`, an audit with
            other settings. Nothing is written then.
    """
    path = folder.path
    current = folder.settings(moved=True)
    holds_another(folder, settings, overwrite=False)
    if (current_weights := weights_in(folder, settings)) != weights:
        held = "no model" if current_weights is None else "another model than the one to be audited"
        raise InputError(f"{path}: holds {held}; open the run again, or make it again")
    goes_on = _goes_on(current.audit, settings.audit)
    if current.audit not in (None, settings.audit) and not (goes_on or overwrite):
        changed = "; ".join(current.difference(settings))
        raise InputError(
            f"{path}: holds an audit with other settings ({changed}); use the same settings, "
            "another --out, or pass --overwrite to replace it (in Python overwrite=True)"
        )
    folder.manifest.refuse_taken(_audit_files(folder))
    tables, made_of = folder.tables, identity(settings, weights, classes)
    manifest = listed(tables)
    if current.audit != settings.audit or manifest is None or manifest[0] != made_of:
        if current.audit == settings.audit and any(tables.glob("*.parquet")):
            remark(f"{tables}: not known to be of this model and these settings; computed again")
        remove_conclusions(folder)
        if goes_on and manifest is not None and manifest[0] == made_of:
            _keep_drawn(TableFolder(tables, made_of), manifest[1])
        else:
            clear(tables)
    folder.write_settings(settings)
    return TableFolder(tables, made_of)


def _goes_on(current: AuditSettings | None, settings: AuditSettings | None) -> bool:
    """Return whether an audit reads on where another one that draws texts had stopped."""
    if current is None or settings is None or not (current.is_drawn and settings.is_drawn):
        return False
    return current.is_same_but_for_budget(settings)


def _keep_drawn(tables: TableFolder, files: Collection[str]) -> None:
    """Remove the files of an audit, except the tables of the texts that it has drawn."""
    for file in files:
        if not file.startswith(f"{DRAWN}/"):
            tables.remove(file)


def _audit_files(folder: RunFolder) -> list[str]:
    """Return the names of what an audit may write."""
    names = [*(f"{name}.parquet" for name in registered()), ABOUT, RATES, ADVERSARY]
    tables = folder.tables.name
    reports = ("findings.json", "report.html", "report-more")
    return [tables, *(f"{tables}/{name}" for name in names), *reports]
