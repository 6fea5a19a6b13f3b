"""One question per file: its table, its findings, its cost, and what the report shows of it."""

import ast
import pkgutil
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "heedmap.experiments"  # entry points by which other packages register experiments


def summaries(*, retraining: bool = False) -> dict[str, str]:
    """Return each experiment module's question: its docstring's first line, read without importing it.

    `retraining`: of those that train further models, which have a function `variants`; else of the others.
    """
    questions = {}
    for module in pkgutil.iter_modules(__path__):
        tree = ast.parse(Path(__path__[0], f"{module.name}.py").read_text("utf-8"))
        trains = any(
            isinstance(node, ast.FunctionDef) and node.name == "variants" for node in tree.body
        )
        if trains == retraining and any(_assigns(node, "EXPERIMENTS") for node in tree.body):
            questions[module.name] = (ast.get_docstring(tree) or "").splitlines()[0]
    for entry in () if retraining else entry_points(group=GROUP):
        questions[entry.name] = f"of the package {entry.value.split(':')[0]}"
    return questions


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in node.targets
    )
