"""Write an audit's findings, maps and tables to files that other programs read."""

from collections.abc import Callable, Mapping
from pathlib import Path

from heedmap.errors import InputError
from heedmap.experiments.findings import AuditResult
from heedmap.files.manifest import Manifest
from heedmap.files.overwriting import has_content, refuse_data, write_file
from heedmap.files.storage import refuse_file
from heedmap.report.anonymous import without_texts
from heedmap.report.exported_tables import exported_tables, findings_table
from heedmap.report.table_formats import ENCODERS, table_files
from heedmap.report.workbook import workbook
from heedmap.runs.export_place import place_of
from heedmap.runs.folder import RunFolder
from heedmap.terminal.output import remark

WORKBOOK = "audit.xlsx"


def export(
    audit: AuditResult,
    out: str | Path,
    file_format: str | None = None,
    *,
    texts: bool = True,
    overwrite: bool = False,
) -> list[Path]:
    """Write an audit's findings, maps and tables; return the paths. The same audit gives the same bytes.

    A folder gets a file per table (of xlsx one workbook, with a sheet per table). A single file holds the
    findings, or of xlsx everything.

    Args:
        audit: from `heedmap.audit` or `heedmap.open_audit`.
        out: a folder, or a file whose name ends in the format.
        file_format: one of FORMATS; None for what the file's name says, or csv.
        texts: False to leave out tokens, texts, queries and ids.
        overwrite: replace files of other content. A file of the same content is left as it is.

    Raises:
        InputError: an unknown format; files are there and `overwrite` is False, or heedmap did not write them;
            a link is in a file's place; the place cannot be written; openpyxl is missing.
    """
    place = place_of(out, file_format)
    audit = audit if texts else without_texts(audit)
    if place.is_file:
        refuse_data(place.path, audit.settings.data.source)
        write_file(place.path, _single_file(audit, place.file_format), overwrite)
        return [place.path]
    refuse_file(place.path)
    if RunFolder(place.path).is_begun():  # whose own tables have the same names
        raise InputError(
            f"{place.path}: expected a folder for the files, found a run; choose another --out, such as "
            f"{place.path / 'export'}"
        )
    return _write_folder(place.path, _files(audit, place.file_format), overwrite)


def _single_file(audit: AuditResult, file_format: str) -> bytes:
    if file_format == "xlsx":
        return _workbook(audit)
    return ENCODERS[file_format](findings_table(audit))


def _files(audit: AuditResult, file_format: str) -> Mapping[str, Callable[[], bytes]]:
    """Return what makes each file of a folder, by its name."""
    if file_format == "xlsx":
        content = _workbook(audit)
        return {WORKBOOK: lambda: content}
    return table_files(exported_tables(audit), file_format)


def _workbook(audit: AuditResult) -> bytes:
    content, notes = workbook(exported_tables(audit))
    for note in notes:
        remark(note)
    return content


def _write_folder(
    folder: Path, files: Mapping[str, Callable[[], bytes]], overwrite: bool
) -> list[Path]:
    """Write files and list them in the folder's manifest; nothing is written if one of them is refused."""
    paths = {folder / name: make for name, make in files.items()}
    present = {path for path, make in paths.items() if has_content(path, make, overwrite)}
    manifest = Manifest.above(folder / "file") or Manifest(folder)
    relative = folder.absolute().relative_to(manifest.root.absolute())
    names = dict.fromkeys(part for name in files for part in _with_folders(relative / name))
    manifest.refuse_taken([*names])
    manifest.start()
    for path, make in paths.items():
        if path not in present:
            manifest.write(path, make())
    return list(paths)


def _with_folders(name: Path) -> list[str]:
    """Return a file's name and those of the folders above it, in which no link is followed."""
    return [path.as_posix() for path in (name, *name.parents) if path.parts]
