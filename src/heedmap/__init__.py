"""heedmap: should you heed the heat map?

import heedmap as hm
corpus = hm.load("reviews")
run = hm.train(corpus, encoder="lstm", score="additive", seed=0)
audit = hm.audit(run)
audit.show()
"""

import warnings
from typing import TYPE_CHECKING

from heedmap.papers.jain_wallace.settings import defaults as _jain_wallace
from heedmap.runs.defaults import register as _register

if TYPE_CHECKING:
    from heedmap.calibration.calibrate import calibrate
    from heedmap.comparisons.compare import compare
    from heedmap.data.corpus import Corpus, Split
    from heedmap.data.load import load
    from heedmap.errors import InputError
    from heedmap.experiments.findings import Finding
    from heedmap.runs.audit import audit, open_audit
    from heedmap.runs.audited import Audit
    from heedmap.runs.check import check
    from heedmap.runs.check_adversary import check_adversary
    from heedmap.runs.explain import explain
    from heedmap.runs.from_arrays import from_arrays
    from heedmap.runs.open import open_model, open_run
    from heedmap.runs.run import Run
    from heedmap.runs.train import fine_tune, train
    from heedmap.sweeps.labels import audit_labels

__version__ = "0.1.0"

# Of a package in which libraries that we load draw their bars in a notebook; ours needs none.
warnings.filterwarnings("ignore", "IProgress not found")

# What a paper trains and audits its data sets with holds for every run on them. Runs know no papers.
_register(_jain_wallace)

# Names are imported when first used: `heedmap --help` must not wait for torch.
_HOMES = {
    "Audit": "runs.audited",
    "audit": "runs.audit",
    "audit_labels": "sweeps.labels",
    "calibrate": "calibration.calibrate",
    "compare": "comparisons.compare",
    "check": "runs.check",
    "debate": "debates.debate",
    "check_adversary": "runs.check_adversary",
    "open_audit": "runs.audit",
    "Corpus": "data.corpus",
    "Split": "data.corpus",
    "load": "data.load",
    "InputError": "errors",
    "Finding": "experiments.findings",
    "explain": "runs.explain",
    "fine_tune": "runs.train",
    "from_arrays": "runs.from_arrays",
    "open_model": "runs.open",
    "Run": "runs.run",
    "open_run": "runs.open",
    "train": "runs.train",
}

__all__ = [
    "Audit",
    "Corpus",
    "Finding",
    "InputError",
    "Run",
    "Split",
    "audit",
    "audit_labels",
    "calibrate",
    "check",
    "check_adversary",
    "compare",
    "debate",
    "explain",
    "fine_tune",
    "from_arrays",
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

    value: object = getattr(import_module(f"heedmap.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
