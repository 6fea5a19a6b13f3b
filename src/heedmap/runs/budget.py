"""An audit's budget: whether it has one, what an earlier call has drawn, and the drawn texts of a run."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.experiments.budget import BudgetContext, Clock
from heedmap.experiments.drawing import FIRST_LOOK, first_texts
from heedmap.experiments.questions.highlights import PER_CLASS, TEXTS
from heedmap.experiments.rates import Rates
from heedmap.experiments.reading import Reader
from heedmap.experiments.registry import registered
from heedmap.experiments.variants import Retraining
from heedmap.files.table_folder import TableFolder
from heedmap.models.layered import Layered
from heedmap.models.trace import Model
from heedmap.runs.audit_defaults import audited_split, texts_to_draw
from heedmap.runs.audit_folder import ABOUT
from heedmap.runs.folder import RunFolder
from heedmap.runs.run import Run
from heedmap.settings.audit import AuditSettings
from heedmap.terminal.output import remark
from heedmap.terminal.progress import note, portion

MINUTES = 10.0  # of a transformer's audit of more work
# Multiplications: about ten minutes of one core (260 sentences of SST and MiniLM). They are counted and not
# timed, so that a busy machine asks the same.
MOST_WORK = 10**13
OF_READING = 0.5  # of the bar, for what the bottom line rests on
PASSES = 150  # of a text that leave-one-out does not make: gradients along a path, other weights, other orders


def with_budget(run: Run, settings: AuditSettings) -> AuditSettings:
    """Return the settings with the default budget, if it applies, and with what an earlier call has drawn.

    Raises:
        InputError: both minutes and a number of texts.
    """
    if settings.drawn is not None and settings.minutes is not None:
        raise InputError(
            f"drawn = {settings.drawn}: expected either minutes or a number of texts to draw, got both; leave "
            "one out"
        )
    can_read = "reading" in run.model.capabilities
    if not can_read:
        _refuse_drawing(settings)
    stored = None if run.folder is None else RunFolder(run.folder).settings(moved=True).audit
    if stored is not None and not stored.is_same_but_for_budget(settings):
        stored = None
    is_open = settings.minutes is None and settings.drawn is None and can_read
    if is_open and isinstance(run.model, Layered):
        default = stored or settings.model_copy(
            update={"minutes": _default(run.model, audited_split(run.corpus, settings))}
        )
        settings = settings.model_copy(update={"minutes": default.minutes})
    if settings.minutes == "all":
        return settings.model_copy(update={"minutes": None})
    if settings.drawn is None and stored is not None and stored.minutes == settings.minutes:
        earlier = {name: getattr(stored, name) for name in ("drawn", "unasked")}
        return settings.model_copy(update=earlier)
    return settings


def _refuse_drawing(settings: AuditSettings) -> None:
    """Refuse to draw texts for a model that has no bottom line.

    Raises:
        InputError: a number of minutes or of texts to draw.
    """
    minutes = None if settings.minutes == "all" else settings.minutes
    for name, value in {"minutes": minutes, "drawn": settings.drawn}.items():
        if value:
            raise InputError(
                f"{name} = {value}: texts are drawn until the bottom line is certain, and there is none about "
                "a model that cannot read changed input again; leave it out"
            )


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
    from heedmap.huggingface.embedding import layer_parameters
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

    assert isinstance(model, TransformerClassifier)
    lengths: list[int] = model.lengths(split.texts).tolist()
    return layer_parameters(model.model) * sum(n * (n + PASSES) for n in lengths)


def drawn_evidence(
    run: Run,
    settings: AuditSettings,
    clock: Clock,
    rates: Rates,
    tables: TableFolder | None,
    other_seeds: Mapping[str, Model],
    retraining: Retraining | None,
    requested: Collection[str],
) -> BudgetContext:
    """Draw texts until the bottom line is certain or the time is over; return what the others are asked of."""
    drawing = texts_to_draw(run.corpus, settings)
    if settings.drawn is not None and settings.drawn > drawing.whole_texts:
        remark(
            f"--drawn {settings.drawn}: expected at most {drawing.whole_texts}, the number of texts that there "
            "are; all are drawn"
        )
    total = max(TEXTS, PER_CLASS * len(run.model.classes))
    reader = Reader(run.model, drawing, total, settings, rates, tables)
    with portion(OF_READING):
        reading = reader.read(settings.drawn, clock.left)
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
