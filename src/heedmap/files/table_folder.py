"""A run's tables in its folder, each checked to belong to one model and one audit.

tables/manifest.json lists the files with their hashes, and the identity (`identity.py`) of what they were
computed from. A file that is not listed, or has another hash, counts as missing.
"""

import hashlib
import json
from pathlib import Path

import pyarrow as pa

from heedmap.files.storage import leftovers, write_atomically
from heedmap.files.tables import parquet, read_table

MANIFEST = "manifest.json"


class TableFolder:
    """The files that an audit of this identity has written so far."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = folder, identity
        manifest = listed(folder)
        self._files = {} if manifest is None or manifest[0] != identity else manifest[1]

    def get(self, name: str) -> bytes | None:
        """Read a file; None if it is missing or not the one that was written."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError:
            return None
        return content if self._files.get(name) == _hash(content) else None

    def put(self, name: str, content: bytes) -> None:
        """Write a file and list it in the manifest."""
        write_atomically(self.folder / name, content)
        self._files[name] = _hash(content)
        about = {"identity": self.identity, "files": dict(sorted(self._files.items()))}
        write_atomically(self.folder / MANIFEST, json.dumps(about, indent=1))

    def table(self, name: str) -> pa.Table | None:
        """Read a table; None if it is missing.

        Raises:
            InputError: the file is not a table.
        """
        content = self.get(f"{name}.parquet")
        if content is None:
            return None
        return read_table(self.folder / f"{name}.parquet", content)

    def keep(self, name: str, content: pa.Table) -> None:
        """Write a table; the same table gives the same bytes."""
        self.put(f"{name}.parquet", parquet(content))

    def holds(self, file: str) -> bool:
        """Whether a file is listed and exists."""
        return file in self._files and (self.folder / file).exists()


def listed(folder: Path) -> tuple[str, dict[str, str]] | None:
    """Read the identity and the files' hashes from a manifest; None if it cannot be read."""
    try:
        about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return str(about["identity"]), {str(k): str(v) for k, v in about["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def clear(folder: Path) -> None:
    """Remove only what an audit wrote, the manifest first."""
    files = [
        folder / MANIFEST,
        *(folder / name for name in ("about.json", "rates.json")),
        *leftovers(folder),
    ]
    for path in (*files, *folder.glob("*.parquet"), *folder.glob("*.safetensors")):
        path.unlink(missing_ok=True)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
