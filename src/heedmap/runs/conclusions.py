"""What is concluded from a run's tables: findings.json and report.html."""

import json
import os
from typing import Any

from heedmap.errors import InputError
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


def write_conclusions(folder: RunFolder, findings: str, report: str) -> None:
    """Write findings.json and report.html."""
    folder.manifest.write(folder.findings, findings)
    folder.manifest.write(folder.report, report)  # last: it marks the audit as finished


def remove_conclusions(folder: RunFolder) -> None:
    """Remove findings and report. Call it before removing the tables that they are made from."""
    folder.manifest.remove(folder.report.name)
    folder.manifest.remove(folder.report_without_texts.name)
    folder.manifest.remove(folder.findings.name)
