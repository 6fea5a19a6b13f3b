"""What `compare` takes: audited runs, audits in memory, and folders of reproductions that hold audited runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedmap.errors import InputError, KindError
from heedmap.files.naming import kind_of
from heedmap.runs.audit import open_audit
from heedmap.runs.audited import Audit
from heedmap.runs.folder import RunFolder
from heedmap.runs.listing import list_runs
from heedmap.terminal.output import remark, some_of


@dataclass(frozen=True)
class NamedAudit:
    """An audit and the shortest name that tells its run from the others."""

    name: str
    audit: Audit

    @property
    def classes(self) -> Sequence[str]:
        """The classes by the names that the data give them, where a model has others."""
        return self.audit.settings.data.classes or self.audit.classes


def named_audits(sources: Sequence[str | Path | Audit]) -> list[NamedAudit]:
    """Open every source; a folder of a reproduction stands for the audited runs in it.

    Raises:
        InputError: fewer than two audits, one of them twice, or a source that holds none.
    """
    if isinstance(sources, str | Path | Audit) or not isinstance(sources, Sequence):
        raise KindError(
            f"expected a list of runs, got {kind_of(sources)}; give two or more: [run, another]"
        )
    opened: list[tuple[Path | None, Audit]] = []
    for source in sources:
        opened += _opened(source)
    if len(opened) < 2:
        raise InputError(f"expected two runs or more to compare, got {len(opened)}; name another")
    _refuse_repeated(opened)
    return [
        NamedAudit(name, audit) for name, (_, audit) in zip(_names(opened), opened, strict=True)
    ]


def _opened(source: str | Path | Audit) -> list[tuple[Path | None, Audit]]:
    if isinstance(source, Audit):
        return [(None if source.run is None else source.run.folder, source)]
    if not isinstance(source, str | Path):
        raise KindError(
            f"expected a run's folder or an audit, got {kind_of(source)}; audit it first: heedmap.audit(run)"
        )
    folder = RunFolder(source)
    if folder.is_reproduction():
        return [(path, open_audit(path)) for path in _audited_below(folder.path)]
    return [(folder.path, open_audit(folder.path))]


def _audited_below(root: Path) -> list[Path]:
    """Return the finished audits of runs in a reproduction's folder.

    Raises:
        InputError: there is none.
    """
    runs = [RunFolder(path) for path in list_runs(root)]
    runs = [run for run in runs if run.is_begun() and not run.is_reproduction()]
    audited = [run.path for run in runs if run.report.exists()]
    if not audited:
        raise InputError(
            f"{root}: expected a reproduction that keeps audited runs, as Jain & Wallace's or a debate does, "
            "got one without any; open its result.html instead"
        )
    if left := [run.path.relative_to(root) for run in runs if run.path not in audited]:
        remark(f"{root}: not audited to the end, left out: {some_of(left)}")
    return audited


def _refuse_repeated(opened: Sequence[tuple[Path | None, Audit]]) -> None:
    """Raise InputError if a run is given twice."""
    seen: list[tuple[Path | None, Audit]] = []
    for path, audit in opened:
        place = None if path is None else path.expanduser().resolve()
        if any(audit is other or (place is not None and place == at) for at, other in seen):
            raise InputError(
                f"{path or audit.about.get('name')}: expected every run once, got it twice; name it once"
            )
        seen.append((place, audit))


def _names(opened: Sequence[tuple[Path | None, Audit]]) -> list[str]:
    """Return the last parts of each path, as many as tell it from the others; numbers where none do."""
    parts = [
        (str(audit.about.get("name", "audit")),)
        if path is None
        else path.expanduser().resolve().parts
        for path, audit in opened
    ]
    longest = max(map(len, parts))
    names: list[str] = []
    for own in parts:
        for length in range(1, longest + 1):
            name = "/".join(own[-length:])
            if sum("/".join(other[-length:]) == name for other in parts) == 1:
                break
        names.append(name)
    for i, name in enumerate(names):
        if name in names[:i]:
            names[i] = next(
                f"{name} ({number})"
                for number in range(2, len(names) + 2)
                if f"{name} ({number})" not in names
            )
    return names
