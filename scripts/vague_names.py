"""Count the bound names that say nothing, and fail if their share is above a limit.

    python scripts/vague_names.py 1

A bound name is a variable, a field or a parameter where it gets its value. A name such as `found` or `own` says
how the value came about or what it is like, but not what it is. The limit is a percentage of all bound names of
`src/heedmap`, or of the folder that is named after it.
"""

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "heedmap"
WORDS = {
    "how many, and which": "all any both each every few first last least many more most one ones other others "
    "own same some such that there these this those",
    "its history": "apart asked chosen drawn found given kept known left made read shown taken used wanted",
    "where and when": "about after at before beside far here inside near next now of so then within",
    "a question": "how what when where who whose why",
}
VAGUE = frozenset(word for words in WORDS.values() for word in words.split())
BY_CONVENTION = ("self", "cls", "_")
LISTED = 20  # names and files that are printed if there are too many


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield each name that is bound, as often as it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def is_vague(name: str) -> bool:
    """Return whether a name says nothing; `__all__` and its like are Python's own names."""
    return not name.startswith("__") and name.strip("_") in VAGUE


def main() -> None:
    """Print the share, and exit with an error if it is above the limit."""
    parser = argparse.ArgumentParser(description="Count the bound names that say nothing.")
    parser.add_argument("limit", type=float, help="largest allowed share in percent")
    parser.add_argument("folder", type=Path, nargs="?", default=SOURCE, help="default: src/heedmap")
    options = parser.parse_args()
    total = 0
    names: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in sorted(options.folder.rglob("*.py")):
        bound = [
            n for n in bound_names(ast.parse(path.read_text("utf-8"))) if n not in BY_CONVENTION
        ]
        vague = [name for name in bound if is_vague(name)]
        total += len(bound)
        names.update(vague)
        files[str(path.relative_to(options.folder))] += len(vague)
    share = 100 * names.total() / max(total, 1)
    print(f"{names.total()} of {total} bound names say nothing: {share:.2f} %")
    if share > options.limit:
        for counts in (names, files):
            print(*(f"{name} {count}" for name, count in counts.most_common(LISTED)), sep=", ")
        raise SystemExit(f"expected at most {options.limit:g} %: rename each to what its value is")


if __name__ == "__main__":
    main()
