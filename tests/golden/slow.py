"""The records of what is trained: they take minutes, and are compared with those of another commit."""

from collections.abc import Callable
from pathlib import Path

from golden.papers import PAPERS, record_of_result
from golden.record import Record, record_of
from golden.trainings import RETRAINED, plants_record

Records = tuple[Record, Record]


def _of_audit(name: str) -> Callable[[Path], Records]:
    return lambda folder: record_of(RETRAINED[name](folder), folder)


def _of_paper(name: str) -> Callable[[Path], Records]:
    return lambda folder: record_of_result(PAPERS[name](folder))


SLOW: dict[str, Callable[[Path], Records]] = {
    **{name: _of_audit(name) for name in RETRAINED},
    **{name: _of_paper(name) for name in PAPERS},
    "plants-trained": lambda _: (plants_record("trained"), {}),
}
