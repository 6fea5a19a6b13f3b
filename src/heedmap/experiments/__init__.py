"""One question per file: its table, its findings, its cost, and what the report shows of it."""

import ast
import pkgutil
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "heedmap.experiments"  # entry points by which other packages register experiments


def summaries() -> dict[str, str]:
    """Return each experiment module's question: its docstring's first line, read without importing it."""
    questions = {}
    for module in pkgutil.iter_modules(__path__):
        tree = ast.parse(Path(__path__[0], f"{module.name}.py").read_text("utf-8"))
        if any(_assigns(node, "EXPERIMENTS") for node in tree.body):
            questions[module.name] = (ast.get_docstring(tree) or "").splitlines()[0]
    for entry in entry_points(group=GROUP):
        questions[entry.name] = f"of the package {entry.value.split(':')[0]}"
    return questions


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in node.targets
    )
