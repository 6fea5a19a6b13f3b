"""An audit's budget: whether it has one, what an earlier call has drawn, and the drawn texts of a run."""

import json
import math
import time
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.experiments.budget import BudgetContext, Clock
from heedmap.experiments.context import AuditContext
from heedmap.experiments.drawing import FIRST_LOOK, first_texts
from heedmap.experiments.questions.highlights import PER_CLASS, TEXTS
from heedmap.experiments.rates import Rates
from heedmap.experiments.reading import Reader
from heedmap.experiments.registry import estimate, registered
from heedmap.experiments.variants import Retraining
from heedmap.files.table_folder import TableFolder
from heedmap.models.layered import Layered
from heedmap.models.trace import Model
from heedmap.runs.audit_defaults import audited_split, texts_to_draw
from heedmap.runs.audit_folder import ABOUT
from heedmap.runs.folder import RunFolder
from heedmap.runs.run import Run
from heedmap.settings import AuditSettings
from heedmap.terminal.progress import note

MINUTES = 10.0  # of a transformer's audit of more work
# Multiplications: about ten minutes of one core (260 sentences of SST and MiniLM). They are counted and not
# timed, so that a busy machine asks the same.
MOST_WORK = 10**13
PASSES = 150  # of a text that leave-one-out does not make: gradients along a path, other weights, other orders


class Forecast:
    """The seconds that each question takes of all texts of an audit without a budget, estimated once.

    `began`: at what time of the monotonic clock the audit did. `seconds`: how long the estimate took.
    """

    def __init__(self, run: Run, settings: AuditSettings) -> None:
        self._run, self._settings = run, settings
        self.began, self.seconds = time.monotonic(), 0.0

    @cached_property
    def texts(self) -> Split:
        """Return the texts of the audit without a budget."""
        return audited_split(self._run.corpus, self._settings)

    @cached_property
    def costs(self) -> dict[str, float]:
        """Return the seconds by question."""
        begins = time.monotonic()
        costs = estimate(AuditContext(self._run.model, self.texts, self._settings, registered()))
        self.seconds = time.monotonic() - begins
        return costs


def costs_of(evidence: AuditContext, forecast: Forecast) -> dict[str, float]:
    """Return the forecast of the questions that are not done, by that of all of them if it was made."""
    if not forecast.seconds:
        return estimate(evidence)
    return {name: cost for name, cost in forecast.costs.items() if not evidence.done(name)}


def with_budget(run: Run, settings: AuditSettings, forecast: Forecast) -> AuditSettings:
    """Return the settings with the default budget, if it applies, and with what an earlier call has drawn.

    Raises:
        InputError: both minutes and a number of texts.
    """
    if settings.drawn is not None and settings.minutes is not None:
        raise InputError(
            f"drawn = {settings.drawn}: expected either minutes or a number of texts to draw, got both; leave "
            "one out"
        )
    stored = None if run.folder is None else RunFolder(run.folder).settings(moved=True).audit
    if stored is not None and not stored.is_same_but_for_budget(settings):
        stored = None
    if settings.minutes is None and settings.drawn is None and isinstance(run.model, Layered):
        minutes = _default(run.model, forecast.texts) if stored is None else stored.minutes
        settings = settings.model_copy(update={"minutes": minutes})
    if settings.minutes == "all":
        return settings.model_copy(update={"minutes": None})
    if settings.drawn is None and stored is not None and stored.minutes == settings.minutes:
        earlier = {name: getattr(stored, name) for name in ("drawn", "unasked")}
        return settings.model_copy(update=earlier)
    return settings


def _default(model: Layered, split: Split) -> float | None:
    """Return MINUTES if the audit of all texts is of more than MOST_WORK, and say so."""
    if split.whole_texts <= FIRST_LOOK or _work(model, split) <= MOST_WORK:
        return None
    note(
        f"All questions of all {split.whole_texts} texts would take more than about {MINUTES:g} minutes of one "
        f"core: texts are drawn until the bottom line is certain, or {MINUTES:g} minutes are over (--minutes "
        "sets another time, --minutes all asks all)."
    )
    return MINUTES


def _work(model: Layered, split: Split) -> int:
    """Count multiplications: Σ n (n + PASSES) times the parameters of the layers; n: a text's positions."""
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

    assert isinstance(model, TransformerClassifier)
    embedding = model.model.get_input_embeddings().parameters()
    parameters = sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in embedding)
    lengths: list[int] = model.lengths(split.texts).tolist()
    return parameters * sum(n * (n + PASSES) for n in lengths)


def drawn_evidence(
    run: Run,
    settings: AuditSettings,
    forecast: Forecast,
    rates: Rates,
    tables: TableFolder | None,
    other_seeds: Mapping[str, Model],
    retraining: Retraining | None,
    requested: Collection[str],
) -> BudgetContext:
    """Draw texts until the bottom line is certain or the time is over; return what the others are asked of."""
    drawing = texts_to_draw(run.corpus, settings)
    total = max(TEXTS, PER_CLASS * len(run.model.classes))
    reader = Reader(run.model, drawing, total, settings, rates, tables)
    minutes = settings.minutes if isinstance(settings.minutes, float) else math.inf
    clock = Clock(minutes, forecast.began)
    # What the drawn texts are forecast to take is estimated in the same way.
    reading = reader.read(settings.drawn, lambda: clock.left() - forecast.seconds)
    return BudgetContext(
        run.model,
        first_texts(drawing, reading.texts),
        settings.model_copy(update={"drawn": reading.texts}),
        registered(),
        tables,
        other_seeds,
        retraining,
        requested,
        run.dynamics,
        reading=reading,
        clock=clock,
        unasked=settings.unasked if settings.minutes is not None else settings.unasked or (),
    )


def budget_facts(evidence: BudgetContext) -> dict[str, Any]:
    """Return the facts of the budget: those of an earlier call that drew and asked the same, with its times."""
    facts = evidence.facts()
    content = None if evidence.folder is None else evidence.folder.get(ABOUT)
    if content is None:
        return facts
    earlier = json.loads(content)["about"].get("budget") or {}
    is_same = all(earlier.get(name) == facts[name] for name in ("texts", "of", "answers"))
    return earlier if is_same and {*earlier["unasked"]} == {*evidence.unasked} else facts
