"""Compare the size of each room with its budget, and fail if one is above it; budgets only fall.

    python scripts/budgets.py
    python scripts/budgets.py --lower

A room is a folder of a package with all that is in it (`heedmap/data`), or the package's own files
(`heedmap`). Each package in all, the page, scripts and tests have budgets as well. A line of `budgets.toml` has
the most lines and the most code tokens of one. Code tokens are those of Python's tokenizer without comments,
docstrings, line ends and indents; an f-string is one in every version of Python. `--lower` lowers each budget
to the present number where that is smaller.
"""

import argparse
import ast
import io
import re
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
FILE = "budgets.toml"
SOURCES = ("src", "studies/src")  # folders of packages
PATTERNS = {
    "TypeScript and templates": [
        *("page/src/**/*.ts", "page/tests/**/*.ts"),
        *(f"{source}/**/*.{suffix}" for source in SOURCES for suffix in ("html", "css")),
    ],
    "scripts and benchmarks": ["scripts/**/*.py", "benchmarks/**/*.py"],
    "tests": ["tests/**/*.py"],
}
LAYOUT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER"}
Sizes = Mapping[str, Mapping[str, int]]  # of each room: lines and tokens


def docstring_lines(tree: ast.AST) -> Iterator[int]:
    """Yield the line at which each docstring begins."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str(), lineno=line)), *_]:
                    yield line


def count_tokens(code: str) -> int:
    """Count the code tokens of a Python file."""
    docstrings = set(docstring_lines(ast.parse(code)))
    count = depth = 0  # depth: of f-strings in f-strings, which Python 3.12 and later take apart
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = tokenize.tok_name[token.type]
        is_docstring = kind == "STRING" and token.start[0] in docstrings
        count += depth == 0 and kind not in LAYOUT and not is_docstring
        depth += kind.endswith("STRING_START") - kind.endswith("STRING_END")
    return count


def rooms_with_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file with each room that it counts in."""
    for source in SOURCES:
        for path in (root / source).glob("*/**/*.py"):
            package, *folders = path.relative_to(root / source).parts[:-1]
            yield f"{package} in all", path
            yield "/".join([package, *folders[:1]]), path
    for room, patterns in PATTERNS.items():
        yield from ((room, path) for pattern in patterns for path in root.glob(pattern))


def measure_rooms(root: Path) -> Sizes:
    """Count the lines, and where there is Python the code tokens, of each room."""
    files: dict[Path, dict[str, int]] = {}
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for room, path in rooms_with_files(root):
        if path not in files:
            text = path.read_text("utf-8")
            files[path] = {"lines": text.count("\n")}
            if path.suffix == ".py":
                files[path]["tokens"] = count_tokens(text)
        rooms[room].update(files[path])
    return rooms


def list_faults(sizes: Sizes, budgets: Sizes) -> Iterator[str]:
    """Yield a line for each room that is above its budget, has none or does not exist."""
    for room in sorted({*sizes, *budgets}):
        if room not in budgets:
            yield f"{room}: has no line in {FILE}"
        elif room not in sizes:
            yield f"{room}: has a line in {FILE}, but no files"
        else:
            excess = [
                f"{size} {measure}, at most {limit}"
                for measure, size in sizes[room].items()
                if size > (limit := budgets[room].get(measure, 0))
            ]
            if excess:
                yield f"{room}: {'; '.join(excess)}"


def lower_budgets(text: str, sizes: Sizes) -> str:
    """Return the file's text with each number that is above the present one replaced by it."""
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        room = line.partition(" = {")[0].strip('"')
        for measure, size in sizes.get(room, {}).items():
            number = re.search(rf"\b{measure} = ([\d_]+)", line)
            if number and size < int(number[1]):
                lines[i] = lines[i].replace(number[0], f"{measure} = {size}", 1)
    return "".join(lines)


def main() -> None:
    """Print the table, and exit with an error if a room is not within its budget."""
    parser = argparse.ArgumentParser(description="Compare each room with its budget.")
    parser.add_argument("folder", type=Path, nargs="?", default=REPOSITORY, help=f"has {FILE}")
    parser.add_argument("--lower", action="store_true", help="lower budgets to what there is")
    options = parser.parse_args()
    file, sizes = options.folder / FILE, measure_rooms(options.folder)
    if options.lower:
        file.write_text(lower_budgets(file.read_text("utf-8"), sizes), "utf-8")
    budgets: Sizes = tomllib.loads(file.read_text("utf-8"))
    print(f"{'room':28}{'lines':>8}{'budget':>8}{'tokens':>8}{'budget':>8}")
    for room in dict.fromkeys([*budgets, *sizes]):
        size, budget = sizes.get(room, {}), budgets.get(room, {})
        cells = (numbers.get(m, "-") for m in ("lines", "tokens") for numbers in (size, budget))
        print(f"{room:28}" + "".join(f"{cell:>8}" for cell in cells))
    if faults := list(list_faults(sizes, budgets)):
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    main()
