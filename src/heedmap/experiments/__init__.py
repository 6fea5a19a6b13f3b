"""Experiments on a model's attention: the questions, their methods, and what makes findings of the tables."""

import ast
import pkgutil
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "heedmap.experiments"  # entry points by which other packages register experiments
QUESTIONS = Path(__file__).with_name("questions")


def summaries(*, retraining: bool = False) -> dict[str, str]:
    """Return each experiment module's question: its docstring's first line, read without importing it.

    `retraining`: of those that train further models, which have `variants`; else of the others. A question
    has the name of its table; one with several tables has its module's.
    """
    questions = {}
    # Read as text: importing the questions would load torch to print a help page.
    for module in pkgutil.iter_modules([str(QUESTIONS)]):
        tree = ast.parse((QUESTIONS / f"{module.name}.py").read_text("utf-8"))
        trains = any(
            isinstance(node, ast.keyword) and node.arg == "variants" for node in ast.walk(tree)
        )
        if trains == retraining:
            names = _tables(tree)
            name = names[0] if len(names) == 1 else module.name
            questions[name] = (ast.get_docstring(tree) or "").splitlines()[0]
    questions = dict(sorted(questions.items()))
    for entry in () if retraining else entry_points(group=GROUP):
        questions[entry.name] = f"of the package {entry.value.split(':')[0]}"
    return questions


def _tables(tree: ast.Module) -> list[str]:
    """Return the names of the tables that a module registers."""
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Experiment"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]
