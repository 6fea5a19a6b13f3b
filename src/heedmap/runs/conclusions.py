"""What is concluded from a run's tables: findings.json and report.html."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedmap.errors import InputError
from heedmap.report.beside import folder_beside
from heedmap.runs.folder import RunFolder


def read_findings(folder: RunFolder) -> dict[str, Any] | None:
    """Read what findings.json holds; None if the run is not audited to the end.

    Raises:
        InputError: the file is damaged.
    """
    if not folder.report.exists():  # it is written last
        return None
    try:
        content = json.loads(folder.manifest.read(folder.findings))
        if not isinstance(content["bottom_line"]["answer"], str) or not all(
            isinstance(finding["key"], str) and isinstance(finding["value"], float | int | None)
            for finding in content["findings"]
        ):
            raise ValueError("expected findings and a bottom line")
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        is_blocked = os.path.lexists(folder.findings) and not folder.findings.is_file()
        raise InputError(
            f"{folder.findings}: {'no file; move away what is there, and' if is_blocked else 'damaged;'} "
            f"`heedmap report {folder.path}` writes it anew"
        ) from error
    return dict(content)


def write_conclusions(folder: RunFolder, findings: str, pages: Mapping[str, str]) -> None:
    """Write findings.json, report.html and the pages beside it, by their names."""
    folder.manifest.write(folder.findings, findings)
    write_report(folder, folder.report, pages)


def write_report(folder: RunFolder, report: Path, pages: Mapping[str, str]) -> None:
    """Write a report and the pages beside it, and remove those that another audit had more of."""
    beside = folder_beside(report.name)
    listed = folder.manifest.load().below([beside])
    folder.manifest.remove(*(name for name in listed if name not in pages))
    for name, content in pages.items():
        if name != report.name:
            folder.manifest.write(folder.path / name, content)
    folder.manifest.write(report, pages[report.name])  # last: it marks the audit as finished


def remove_conclusions(folder: RunFolder) -> None:
    """Remove findings and reports. Call it before removing the tables that they are made from."""
    for report in (folder.report, folder.report_without_texts):
        folder.manifest.remove(report.name)
        folder.manifest.remove(folder_beside(report.name))
    folder.manifest.remove(folder.findings.name)
