"""The registry of experiments, from which the audit, the card, the page and the help are made.

To add an experiment, declare an `Experiment` in a file of `questions`, or at an entry point of the group
`heedmap.experiments` of any installed package. Nothing else changes.
"""

import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from heedmap.data.corpus import Split
from heedmap.errors import InputError, NamedOnce
from heedmap.experiments import GROUP, questions
from heedmap.experiments.columns import Columns, type_of
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe, measure
from heedmap.experiments.findings import Finding, reworded
from heedmap.experiments.pooling import by_text
from heedmap.experiments.rates import Rates
from heedmap.experiments.results import Results, TextNumbers
from heedmap.experiments.variants import Retraining, Variant
from heedmap.models.trace import Capability, Model
from heedmap.nouns import TEXTS, Nouns
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import AnyModelSettings

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Mapping[str, Any]]  # one text: its row of each table that has one row per text


@dataclass(frozen=True)
class HeatMap:
    """One number per token of a text, or per one of other `tokens`; None where undefined.

    `against` marks the tokens without which the answer is likelier, where that is known.
    """

    name: str
    kind: Literal["attention", "importance"]
    weights: Sequence[float] | None
    tokens: Sequence[str] | None = None
    against: Sequence[bool] | None = None


@dataclass(frozen=True)
class Intervention:
    """What was done to one text, and what came of it: a page shows it where it cannot compute predictions.

    `tvd` is the change of the prediction, 0 to 1; `changed` says whether the answer is another then, or in
    which share of several tries. None where not known.
    """

    name: str
    tvd: float | None
    changed: float | None


@dataclass(frozen=True)
class Experiment:
    """One question, asked of a model's attention.

    Attributes:
        name: the name of its table.
        run: computes the table, whose column `row` numbers the audited texts. It may use other tables.
        place: position on the card and the page, in ascending order; ours are at 10, 20, ...
        columns: what the table's columns mean (see `column_frame`).
        per_text: whether the table has exactly one row per text, in order.
        applies: whether the experiment applies to this model and these texts.
        needs: what it asks a model to do (`heedmap.models.trace.Capability`). A model that cannot is not asked,
            and card and page say so.
        findings: the card's findings, from the tables (with windows pooled by text).
        figures: import paths `module:function` of functions from an `AuditResult` to a list of
            `heedmap.report.charts.Figure`. They are paths so that no experiment loads the plotting library.
        heat_maps: the heat maps of one text on the page.
        facts: numbers about one text on the page; None or NaN is left out.
        interventions: what it did to one text's weights or words, and what came of it.
        cost: the estimated seconds; None where negligible.
        files: names of the files that it keeps beside its table for this model.
        about: facts about the whole run, for card and page.
        notes: caveats about its numbers: warnings, also shown on card and page.
        variants: the further trainings that it compares. Such an experiment is run only if it is asked for.
        recorded: whether it reads what was recorded in the training; it is run only if something was.
        compares: whether it asks the same of other trainings; it is run only if there are any.
        in_chunks: whether it asks each text by itself, but for `AuditContext.sample`: of many texts it is then
            asked chunk by chunk (`heedmap.experiments.chunks`), else of all of them together.
        before_chunks: whether questions that are asked in chunks read its table, which is of all texts.
    """

    name: str
    run: Callable[[AuditContext], pa.Table]
    place: int = 1000
    columns: Columns = field(default_factory=Columns)
    per_text: bool = True
    applies: Callable[[Model, Split], bool] = lambda model, split: True
    needs: tuple[Capability, ...] = ()
    findings: Callable[[Results], list[Finding]] = lambda results: []
    figures: tuple[str, ...] = ()
    heat_maps: Callable[[Row], list[HeatMap]] = lambda row: []
    facts: Callable[[Row], list[tuple[str, float | int | None]]] = lambda row: []
    interventions: Callable[[Row], list[Intervention]] = lambda row: []
    cost: Callable[[CostProbe], float] | None = None
    files: Callable[[Model], Sequence[str]] = lambda model: ()
    about: Callable[[AuditContext], dict[str, object]] = lambda context: {}
    notes: Callable[[Mapping[str, pa.Table], AnyModelSettings], list[str]] = lambda tables, model: []
    variants: Callable[[Retraining], list[Variant]] | None = None
    recorded: bool = False
    compares: bool = False
    in_chunks: bool = False
    before_chunks: bool = False

    def can_ask(self, model: Model, split: Split) -> bool:
        """Return whether it applies to this model and these texts, and the model can do what it needs."""
        return model.capabilities.issuperset(self.needs) and self.applies(model, split)


@cache
def registered() -> dict[str, Experiment]:
    """Return all experiments by name, in the order of the card.

    Raises:
        InputError: an entry point cannot be loaded, is not an experiment, or has a name that is taken.
    """
    modules = pkgutil.iter_modules(questions.__path__, f"{questions.__name__}.")
    experiments = [
        value
        for module in modules
        for value in vars(pkgutil.resolve_name(module.name)).values()
        if isinstance(value, Experiment)
    ]
    names = {experiment.name for experiment in experiments}
    for entry in entry_points(group=GROUP):
        origin = f"the experiment {entry.name!r} of {entry.value.split(':')[0]}"
        try:
            experiment = entry.load()
        except Exception as error:
            message = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"{origin}: cannot be loaded ({type(error).__name__}: {message}); mend or uninstall it"
            ) from error
        if not isinstance(experiment, Experiment):
            raise InputError(
                f"{origin}: expected an Experiment, got {type(experiment).__name__}; mend or uninstall it"
            )
        # Two experiments of one name would write the same table.
        if experiment.name in names:
            raise InputError(
                f"{origin}: the name {experiment.name!r} is taken; rename or uninstall it"
            )
        names.add(experiment.name)
        experiments.append(experiment)
    # By name, too, so that two packages at one place stand in the same order wherever they are installed.
    ordered = sorted(experiments, key=lambda experiment: (experiment.place, experiment.name))
    return {experiment.name: experiment for experiment in ordered}


def applicable(
    model: Model, split: Split, recorded: bool = False, compared: bool = False
) -> list[str]:
    """Return the names of the experiments that apply to this model and these texts, in order.

    Those that train further models are not among them (see `retrainable`), those that read a record of the
    training only if there is one, and those that ask other trainings only if the model is `compared` with any.
    """
    return [
        name
        for name, experiment in _of_audit(recorded, compared).items()
        if experiment.can_ask(model, split)
    ]


def not_asked(
    model: Model, split: Split, recorded: bool = False, compared: bool = False
) -> dict[str, list[Capability]]:
    """Return the experiments that would be `applicable` to a model that can do more, with what it cannot."""
    return {
        name: missing
        for name, experiment in _of_audit(recorded, compared).items()
        if (missing := [need for need in experiment.needs if need not in model.capabilities])
        and experiment.applies(model, split)
    }


def retrainable(model: Model, split: Split) -> list[str]:
    """Return the names of the experiments that train further models and apply here, in order."""
    return [
        name
        for name, experiment in registered().items()
        if retrains(name) and experiment.can_ask(model, split)
    ]


def retrains(name: str) -> bool:
    """Return whether an experiment trains further models."""
    return registered()[name].variants is not None


def make_findings(
    tables: Mapping[str, pa.Table],
    settings: AuditSettings,
    classes: list[str],
    model: AnyModelSettings | None = None,
    rates: Rates | None = None,
    nouns: Nouns = TEXTS,
) -> list[Finding]:
    """Return a finding per question that the tables can answer, in the order of the card.

    Windows of a long text are pooled: every n counts texts. `model`: the run's model settings, which name
    the layer on trial where there are several. `rates` give the findings their levels, and `nouns` are put
    into their sentences.

    Raises:
        InputError: two findings have one key.
    """
    results = Results(by_text(tables), settings, classes, model, rates)
    findings: NamedOnce[Finding] = NamedOnce(results.numbers.noun)
    for of_question in _findings(results):
        for finding in of_question:
            findings[finding.key] = reworded(finding, nouns, classes)
        results.numbers.clear()  # nobody asks for them here, and those of many texts fill the memory
    return [*findings.values()]


def numbers_by_finding(
    tables: Mapping[str, pa.Table],
    settings: AuditSettings,
    classes: list[str],
    model: AnyModelSettings | None = None,
    rates: Rates | None = None,
) -> dict[str, TextNumbers]:
    """Return the numbers per text that each finding is made of, by its key (see `make_findings`).

    A finding of another package that is not made by `Results.finding` has none.
    """
    results = Results(by_text(tables), settings, classes, model, rates)
    for _ in _findings(results):
        pass
    return results.numbers


def _findings(results: Results) -> Iterator[list[Finding]]:
    """Yield the findings of each question."""
    for name, experiment in registered().items():
        if name in results.tables:
            yield experiment.findings(results)


def estimate(context: AuditContext) -> dict[str, float]:
    """Estimate the seconds for each experiment that is not done yet."""
    costs = {
        name: experiment.cost
        for name, experiment in registered().items()
        if experiment.cost is not None
        and experiment.can_ask(context.model, context.split)
        and not context.done(name)
    }
    if not costs or not len(context.lengths):
        return {}
    probe = measure(context)
    return {name: cost(probe) for name, cost in costs.items()}


def column_frame(tables: Mapping[str, pa.Table]) -> "pd.DataFrame":
    """Return a frame with a row per column of each table: its type, its range or unit, and its meaning.

    Of another package's table that describes no columns, range and meaning are empty.
    """
    import pandas as pd

    rows = []
    for name, table in tables.items():
        described = registered()[name].columns if name in registered() else Columns()
        for field_ in table.schema:
            said = described.of(field_.name)
            description = ("", "") if said is None else (said.range, said.meaning)
            rows.append((name, field_.name, type_of(field_.type), *description))
    return pd.DataFrame(rows, columns=["table", "column", "type", "range", "meaning"])


def _of_audit(recorded: bool, compared: bool) -> dict[str, Experiment]:
    """Return the experiments that an audit asks without further trainings."""
    return {
        name: experiment
        for name, experiment in registered().items()
        if not retrains(name)
        and (recorded or not experiment.recorded)
        and (compared or not experiment.compares)
    }
