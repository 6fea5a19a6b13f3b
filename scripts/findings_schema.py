"""The JSON schema of findings.json, made from the classes: python scripts/findings_schema.py

Raise VERSION in heedmap/runs/findings_file.py if a key came, went or changed its meaning.
"""

import json
from pathlib import Path

from heedmap.runs.findings_file import SCHEMA, made_schema


def text() -> str:
    """Return the text of the file."""
    return json.dumps(made_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path("src/heedmap/runs", SCHEMA).write_text(text(), encoding="utf-8")
