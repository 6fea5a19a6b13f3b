"""How long a sweep will take and how much memory, measured before anything is trained."""

from typing import Any, NamedTuple

from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import estimate, registered
from heedmap.papers.kit.timing import REPORT, Timer
from heedmap.retraining.estimate import side_by_side
from heedmap.runs.audit_defaults import audit_defaults, audited_split
from heedmap.runs.open import open_model
from heedmap.settings.audit import AuditSettings
from heedmap.sweeps.plan import Plan, SweepRun, check, raw_options
from heedmap.sweeps.sweep import texts_of
from heedmap.terminal.progress import track
from heedmap.training.sweep import one_thread, processes

AUDIT = 0.35  # GB of an audit's tables, figures and page: .33 of SST (LSTM)


class Forecast(NamedTuple):
    """The seconds of each run by its name, those of all side by side, and the GB of one process if known."""

    seconds: dict[str, float]
    total: float
    workers: int
    memory: float | None


def forecast(plan: Plan, workers: int | None = None) -> Forecast:
    """Forecast a sweep by a few steps of each kind of training and some texts of each kind of audit.

    The memory is the most that this process took for that, with the texts of all data sets, and what tables,
    figures and page take besides. One of a kind is measured once: seeds take equally long.

    Raises:
        InputError: as `sweep`.
    """
    check(plan)
    corpora = texts_of(plan)
    timers = {source: Timer(corpus, workers) for source, corpus in corpora.items()}
    by_kind: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for run in track(plan.runs):
        kind = str(run.model_copy(update={"seed": 0}))
        if kind not in by_kind:
            timer = timers[run.data]
            by_kind[kind] = _own(run, plan, timer) if run.model is None else _opened(run, plan)
        seconds[str(run)] = by_kind[kind]
    count = min(processes(workers), len(seconds))
    return Forecast(seconds, side_by_side([*seconds.values()], workers), count, _memory())


def _own(run: SweepRun, plan: Plan, timer: Timer) -> float:
    recipe: dict[str, Any] = {
        "encoder": run.encoder,
        "score": run.score,
        "normaliser": run.normaliser,
        **plan.train,
    }
    instances = plan.audit.get("instances", AuditSettings.model_fields["instances"].default)
    return timer.training(**recipe) + timer.audit(instances, **recipe)


def _opened(run: SweepRun, plan: Plan) -> float:
    assert run.model is not None
    opened = open_model(
        run.model, run.data, view=run.view, **raw_options(plan.options_of(run.data))
    )
    defaults = audit_defaults(opened.model, opened.settings.data)
    settings = AuditSettings.of(**{**defaults, **plan.audit})
    texts = audited_split(opened.corpus, settings)
    with one_thread():
        costs = estimate(AuditContext(opened.model, texts, settings, registered()))
    return sum(costs.values()) + REPORT


def _memory() -> float | None:
    """Return the most GB that a process may take; None where the system does not say (Windows)."""
    try:
        import resource
        import sys
    except ImportError:
        return None
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return AUDIT + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
