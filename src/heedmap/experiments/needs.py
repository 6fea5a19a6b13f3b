"""Say which questions a model could not be asked, and what the audit therefore cannot tell.

The names of the questions, each with what the model cannot do, stand in the facts of the audit (`not_asked`).
"""

from collections.abc import Mapping
from typing import Any

CANNOT = {
    "reading": "it cannot read changed input again",
    "gradients": "it gives no gradients by its input, or a norm takes the input's length away",
    "read-out": "its answer is not linear in one row of weights",
    "classes": "it gives a number, and decides between no classes",
}
UNTOLD = {
    "reading": "what becomes of the answer if the input is read again without some of it",
    "gradients": "whether gradients by the input rank it as the map does",
    "read-out": "what is predicted under any other weights",
    "classes": "what would change a decision, since the model gives a number",
}


def not_asked_text(facts: Mapping[str, Any]) -> str:
    """Name the questions that were not asked by what the model cannot do; empty if all were asked.

    >>> not_asked_text({"not_asked": {"leave_one_out": ["reading"], "highlights": ["reading"]}})
    'leave one out, highlights (it cannot read changed input again)'
    """
    names_by_lack: dict[str, list[str]] = {}
    for name, lacking in facts.get("not_asked", {}).items():
        reason = " and ".join(CANNOT[capability] for capability in lacking)
        names_by_lack.setdefault(reason, []).append(name.replace("_", " "))
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in names_by_lack.items())


def untold(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what the audit could not tell for want of what the model cannot do."""
    lacking = {need for needs in facts.get("not_asked", {}).values() for need in needs}
    return tuple(said for need, said in UNTOLD.items() if need in lacking)
