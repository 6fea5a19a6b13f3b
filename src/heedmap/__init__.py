"""heedmap: should you heed the heat map?

import heedmap as hm
corpus = hm.load("reviews")
run = hm.train(corpus, encoder="lstm", score="additive", seed=0)
audit = hm.audit(run)
audit.show()
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedmap.adversary_check import check_adversary
    from heedmap.auditing import Audit, audit, open_audit
    from heedmap.data.corpus import Corpus, Split, load
    from heedmap.errors import InputError
    from heedmap.findings import Finding
    from heedmap.model_runs import fine_tune_model as fine_tune
    from heedmap.model_runs import open_model
    from heedmap.run import Run
    from heedmap.runs import open_run, train

__version__ = "0.1.0"

# Names are imported when first used: `heedmap --help` must not wait for torch.
_HOMES = {
    "Audit": "auditing",
    "audit": "auditing",
    "check_adversary": "adversary_check",
    "open_audit": "auditing",
    "Corpus": "data.corpus",
    "Split": "data.corpus",
    "load": "data.corpus",
    "InputError": "errors",
    "Finding": "findings",
    "fine_tune": "model_runs:fine_tune_model",
    "open_model": "model_runs",
    "Run": "runs",
    "open_run": "runs",
    "train": "runs",
}

__all__ = [
    "Audit",
    "Corpus",
    "Finding",
    "InputError",
    "Run",
    "Split",
    "audit",
    "check_adversary",
    "fine_tune",
    "load",
    "open_audit",
    "open_model",
    "open_run",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'heedmap' has no attribute {name!r}")
    from importlib import import_module

    home, _, there = _HOMES[name].partition(":")
    value: object = getattr(import_module(f"heedmap.{home}"), there or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
