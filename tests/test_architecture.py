"""Which file imports which: read from the source, imports for types included."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"


def module_name(path, source):
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph(source):
    """The modules below `source` that each of them imports, anywhere in its file."""
    paths = source.rglob("*.py")
    trees = {module_name(path, source): ast.parse(path.read_text("utf-8")) for path in paths}
    graph = {}
    for module, tree in trees.items():
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                # A name is a module of the package, or else stands in the package's own file.
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= full & trees.keys() or {node.module}
                names |= {node.module} if full - trees.keys() else set()
        graph[module] = names & trees.keys()
    return graph


@pytest.fixture(scope="module")
def graph():
    return import_graph(SOURCE)


def rooms_of(module):
    """The room of a module and those around it, as the page writes them."""
    path = SOURCE / Path(*module.split("."))
    folders = path if path.is_dir() else path.parent
    inner = folders.relative_to(SOURCE / "heedmap").parts
    return ["/".join(inner[: i + 1]) + "/" for i in range(len(inner))]


def test_no_circle_of_files_imports_itself(graph):
    assert "heedmap.experiments.findings" in graph["heedmap.experiments.questions.agreement"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_rooms_import_only_rooms_below_them_on_the_architecture_page(graph):
    page = (SOURCE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    order = re.findall(r"^\| `(\w+/)`", page, re.M)  # rooms in rooms are not ordered
    above, count = [], 0
    for module, imported in graph.items():
        for name in imported:
            (room, *_), (other, *_) = rooms_of(module) or [""], rooms_of(name) or [""]
            if room and other and room != other:
                count += 1
                above += [(module, name)] * (order.index(room) > order.index(other))
    assert count > 1000, "imports are found at all"
    assert not above


def test_every_room_is_on_the_architecture_page_and_every_room_on_it_exists(graph):
    page = (SOURCE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    papers = re.compile("papers/.+")
    rooms = {room for module in graph for room in rooms_of(module) if not papers.match(room)}
    assert set(re.findall(r"^\| `([\w/]+/)`", page, re.M)) == rooms


def test_no_method_of_the_experiments_imports_a_question(graph):
    """What several questions compute with stands below them, and so does what the registry is made of."""
    room = "heedmap.experiments"
    below = [module for module in graph if module.startswith(f"{room}.methods")]
    below += [f"{room}.{name}" for name in ("registry", "context", "cost", "results", "findings")]
    assert len(below) > 10, "modules are found at all"
    for module in below:
        assert not [name for name in graph[module] if name.startswith(f"{room}.questions.")], module


def test_a_circle_is_seen_where_there_is_one(tmp_path):
    (tmp_path / "a.py").write_text("if TYPE_CHECKING:\n    from b import B\n")
    (tmp_path / "b.py").write_text("import a\n")
    assert import_graph(tmp_path) == {"a": {"b"}, "b": {"a"}}
