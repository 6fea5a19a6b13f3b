"""Run every annotated function once under jaxtyping: a pytest plugin, loaded by `make shapes`.

    HEEDMAP_SHAPES=1 PYTHONPATH=tests pytest -p shapes

Checked shapes nearly double the time of a tight loop, so the other passes run without them. This one runs one
case of each fast test and fails if a function with a shape in its signature was never called.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from beartype import beartype

PACKAGE = Path(__file__).parents[1] / "src" / "heedmap"
# Packages in which every annotation is checked; elsewhere only modules with shapes are. None is in `runs`: its
# functions are called by users, say themselves what was expected, and are tested for it.
CHECKED = (
    "counterfactual", "data.batches", "experiments", "files", "huggingface", "importance",
    "measures", "models", "retraining", "training",
)  # fmt: skip
# Functions that only slow tests call, or further cases of a test.
SLOW = frozenset(
    f"heedmap.{name}"
    for name in (
        "calibration.weights_apart._says_else_elsewhere",
        "calibration.weights_apart._says_the_same_everywhere",
        "experiments.methods.flip_sets._smallest",
        "huggingface.attention_hook.Then.weights",
        "huggingface.transformer_classifier.TransformerClassifier.plain",
        "huggingface.transformer_classifier.TransformerClassifier.reach",
        "huggingface.views.View._row",
        "huggingface.views.View.reach",
        "huggingface.views._Below.weights",
        "huggingface.word_attention.TextAttention.of_words",
        "models.arrays.ArraysModel.embed",
        "models.arrays.ArraysModel.logits_from",
        "models.arrays.ArraysModel.on_tokens",
        "models.arrays.ArraysModel.to_heatmap",
        "models.arrays.ArraysModel.token_positions",
        "models.encoders.CNN.last",
        "models.encoders.GRU.last",
        "models.encoders.NoEncoder.last",
        "models.scores.PairDot.forward",
        "papers.lu.measures.perturbation.<locals>.hook",
        "papers.snell.records.padded",
    )
)

_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}
called: set[str] = set()


def typechecked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return beartype's checks of an empty function, the same for the same name and annotations.

    A nested function is decorated at every call of the outer one, and beartype then compiles its checks again,
    which took most of the time of some tests. jaxtyping passes the type checker an empty function of the same
    signature, so one function's checks serve all.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    key = (
        function.__module__,
        function.__qualname__,
        (code.co_flags, code.co_posonlyargcount, names, code.co_code),
        (len(function.__defaults__ or ()), tuple(function.__kwdefaults__ or ())),
        tuple(function.__annotations__.items()),
    )
    try:
        if key not in _compiled:
            _compiled[key] = _recorded(beartype(function))
    except TypeError:  # an annotation that cannot be a key
        return _recorded(beartype(function))
    return _compiled[key]


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    name = f"{function.__module__}.{function.__qualname__}"

    def record(*args: Any, **kwargs: Any) -> Any:
        called.add(name)
        return function(*args, **kwargs)

    return record


def annotated() -> dict[str, list[str]]:
    """Return the functions with a shape in their signature, by the modules that import jaxtyping."""
    functions = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] == "runs":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        kinds = {
            alias.name for node in imports if node.module == "jaxtyping" for alias in node.names
        }
        if kinds:
            module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            functions[module] = list(_annotated_in(tree, f"{module}.", kinds))
    return functions


def _annotated_in(tree: ast.AST, prefix: str, kinds: set[str]) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _annotated_in(node, f"{prefix}{node.name}.", kinds)
        elif isinstance(node, ast.FunctionDef):
            signature = [node.args, *([node.returns] if node.returns else [])]
            names = {n.id for part in signature for n in ast.walk(part) if isinstance(n, ast.Name)}
            if names & kinds and not all(map(_does_nothing, node.body)):
                yield f"{prefix}{node.name}"
            yield from _annotated_in(node, f"{prefix}{node.name}.<locals>.", kinds)
        else:
            yield from _annotated_in(node, prefix, kinds)


def _does_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement is a docstring, or says that a subclass defines the method."""
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or ast.unparse(statement) == "raise NotImplementedError"


def install() -> None:
    """Import the package under the checks from now on.

    conftest.py calls it before it imports the package: worker processes load this plugin only after that.
    """
    modules = {*annotated(), *(f"heedmap.{name}" for name in CHECKED)}
    jaxtyping.install_import_hook(sorted(modules), "shapes.typechecked")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one case of each test, in the files that import a module with shapes."""
    parents = [(module, *module.rsplit(".", 1)) for module in annotated()]
    near = re.compile(
        "|".join(
            rf"{module}\b|from {parent} import .*\b{stem}\b" for module, parent, stem in parents
        )
    )
    near_files = {
        path for path in {item.path for item in items} if near.search(path.read_text("utf-8"))
    }
    first: dict[tuple[Path, str], pytest.Item] = {}
    for item in items:
        if item.path in near_files:
            first.setdefault((item.path, getattr(item, "originalname", item.name)), item)
    kept = set(first.values())
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect what a worker process has called."""
    called.update(node.workeroutput.get("called", ()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a shape was never checked."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["called"] = sorted(called)
        return
    missed = sorted({name for names in annotated().values() for name in names} - called - SLOW)
    if missed:
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        reporter.write_line("\n    ".join(["\nshapes that no test checked:", *missed]), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
