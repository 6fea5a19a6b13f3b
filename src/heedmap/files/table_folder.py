"""A run's tables in its folder: each is known to belong to one model and one audit before it is used.

tables/manifest.json lists the files with hashes, under the identity (`identity.py`) of what they were
computed from. What is not in it, or not as it says, is not there.
"""

import hashlib
import io
import json
from pathlib import Path

import pyarrow as pa

from heedmap.files.storage import leftovers, write_atomically
from heedmap.files.tables import parquet, read_table

MANIFEST = "manifest.json"


class TableFolder:
    """The files that an audit of this identity has left so far."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = folder, identity
        found = listed(folder)
        self._files = {} if found is None or found[0] != identity else found[1]

    def get(self, name: str) -> bytes | None:
        """A file as it was put here; None where there is none, or another one."""
        try:
            content = (self.folder / name).read_bytes()
        except OSError:
            return None
        return content if self._files.get(name) == _hash(content) else None

    def put(self, name: str, content: bytes) -> None:
        """Keep a file, and say so."""
        write_atomically(self.folder / name, content)
        self._files[name] = _hash(content)
        about = {"identity": self.identity, "files": dict(sorted(self._files.items()))}
        write_atomically(self.folder / MANIFEST, json.dumps(about, indent=1))

    def table(self, name: str) -> pa.Table | None:
        """A table that was kept.

        Raises:
            InputError: it was never one.
        """
        content = self.get(f"{name}.parquet")
        if content is None:
            return None
        return read_table(self.folder / f"{name}.parquet", io.BytesIO(content))

    def keep(self, name: str, content: pa.Table) -> None:
        """Keep a table; the same one gives the same bytes."""
        self.put(f"{name}.parquet", parquet(content))

    def holds(self, file: str) -> bool:
        """Whether a file is listed and there."""
        return file in self._files and (self.folder / file).exists()


def listed(folder: Path) -> tuple[str, dict[str, str]] | None:
    """The identity and the files' hashes of a manifest; None where there is none that can be read."""
    try:
        about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return str(about["identity"]), {str(k): str(v) for k, v in about["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def clear(folder: Path) -> None:
    """Remove what an audit left, and nothing else; the list of it first."""
    files = [folder / MANIFEST, folder / "about.json", *leftovers(folder)]
    for path in (*files, *folder.glob("*.parquet"), *folder.glob("*.safetensors")):
        path.unlink(missing_ok=True)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
