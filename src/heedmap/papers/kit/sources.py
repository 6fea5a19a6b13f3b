"""Where the numbers in a paper's `published` come from.

Every `published` module names its tables of numbers in `SOURCES`. What somebody remembers of a paper is no
source: such a number is not printed as the paper's.
"""

from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "paper", "released code", "result files", "notebook", "slides", "blog", "reprint", "replication"
]
"""How a number was read: in the paper itself, in what its authors released or showed, or as others print it."""
KINDS: tuple[str, ...] = get_args(Kind)


class Source(NamedTuple):
    """How a number was read, and where."""

    kind: Kind
    place: str
