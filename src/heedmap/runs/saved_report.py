"""A report as a file of the user's, with the pages beside it of the texts that it has no room for."""

from contextlib import suppress
from pathlib import Path

from heedmap.experiments.findings import AuditResult
from heedmap.files.manifest import Manifest
from heedmap.files.storage import remove, write_atomically
from heedmap.report.beside import folder_beside
from heedmap.terminal.output import remark


def save_report(audit: AuditResult, path: Path) -> None:
    """Write a report, and pages in a folder beside it if it has no room for all texts.

    Such pages of an earlier report of this name are removed: they may hold texts that this one leaves out.

    Raises:
        InputError: the place cannot be written, or another file is in the place of one of the pages.
    """
    from heedmap.report.page import pages

    (_, report), *beside = pages(audit, path.name)
    folder = path.with_name(folder_beside(path.name))
    manifest = Manifest(folder)
    if manifest.exists:
        manifest.remove(*manifest.load().files)
    if beside:
        manifest.start()
        for name, content in beside:
            manifest.write(path.parent / name, content)
        remark(f"{path}: {len(beside)} more with the other texts in {folder}")
    elif manifest.exists:
        remove(manifest.path)
        with suppress(OSError):
            folder.rmdir()  # only an empty one
    write_atomically(path, report)
