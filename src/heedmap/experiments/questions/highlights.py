"""Are these the words? Each text is read again without the words that the map highlights, and with them alone.

Texts of fewer than three words are left out: none of their words can be highlighted beside others.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments import intervals, rule
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import ClassNumber, Finding, judged
from heedmap.experiments.methods.followed_answers import followed_answers
from heedmap.experiments.methods.rankings import ranked_heats
from heedmap.experiments.methods.rereading import (
    ORDERS,
    PART,
    WHAT,
    Outcomes,
    at_random,
    chance_of_answers,
    outcomes,
    prefix_passes,
    ranked,
)
from heedmap.experiments.registry import Experiment, Intervention, Row
from heedmap.experiments.results import Results, TextNumbers, signed_percent
from heedmap.experiments.rounding import signed
from heedmap.experiments.scales import answer_names
from heedmap.experiments.text_tables import SampledColumn, text_table

NO_LEAD = "the mean lead over {} is below {:g}, and shares of so little say nothing"
TEXTS, PER_CLASS = 300, 30  # of the sample in all, or of each predicted class where that is more

COLUMNS = Columns(
    f"One row per text. Null for texts of fewer than {PART} words and those not sampled: of each predicted "
    f"class the same number is drawn, {TEXTS} texts in all, or {PER_CLASS} of each class where that is more. "
    "Of a model that gives a number the answer's probability is in all columns how far a reading is on the "
    "number's side of the mean of all outputs, in standard deviations of these and at most as far as the "
    "number, and that of guessing is 0.",
    {
        **shared("row", "predicted"),
        "above": (
            "standard deviations",
            "how far the output is above the mean of all outputs; only of a model that gives a number",
        ),
        "probability": ("0 to 1", "that of the answer, the predicted class"),
        "guessing": (
            "0 to 1",
            "that of guessing, 1 / C of C candidates; what is above it is the lead",
        ),
        "unseen": (
            "0 to 1",
            "the answer's probability from a few words of other texts, as many as are highlighted (mean of "
            f"{ORDERS}): what the model says when it sees nothing of the text",
        ),
        "highlighted": (
            "count, from 0",
            "words that are highlighted: those with at least twice the weight of an even map, 0 if they are "
            "more than a third of the words",
        ),
        "gone_{order}": (
            "0 to 1",
            "the largest loss of the answer's probability when the model reads the text without the first k "
            "words by {order}, k up to a third of the words",
        ),
        "alone_{order}": (
            "0 to 1",
            "the answer's probability with the first words by {order} alone, as many as are highlighted",
        ),
        "alone_stays_{order}": ("0 to 1", "whether it is the answer then, too"),
        "among_{order}": (
            "0 to 1",
            "the answer's probability if all other words are replaced by those at the same places of other "
            "texts",
        ),
        "among_stays_{order}": ("0 to 1", "whether it is the answer then, too"),
    },
    order={"map": "the map", "random": f"a random order (mean of {ORDERS})"},
)


def sampled(context: AuditContext) -> NDArray[np.int64]:
    """Return the rows that are asked: of each predicted class the same number, where there are so many."""
    rng = context.generator("highlights")
    # The windows of a long text are drawn together, whatever each of them is predicted.
    if context.split.text_of is not None:
        rows = context.split.drawn(rng, TEXTS)
    else:
        predicted = context.table("instances")["predicted"].to_numpy()
        classes = np.unique(predicted)
        share = max(PER_CLASS, -(-TEXTS // max(1, len(classes))))
        rows_by_class = (rng.permutation(np.flatnonzero(predicted == c))[:share] for c in classes)
        rows = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *rows_by_class]))
    return rows[long_enough(context)[rows]]


def long_enough(context: AuditContext) -> NDArray[np.bool_]:
    """Return whether each text has words that can be highlighted beside others: PART or more."""
    return np.array([len(text) >= PART for text in context.texts])


def highlights(context: AuditContext) -> pa.Table:
    """Return what the answers lose without the highlighted words, and how many stay with them alone."""
    return highlights_of(context, sampled(context))


def highlights_of(context: AuditContext, rows: NDArray[np.int64]) -> pa.Table:
    """Return `highlights` of some texts, in ascending order; null for the others."""
    heats = ranked_heats(context, rows)
    rankings = {}
    for row in heats:
        rng = context.text_generator("highlights", row)
        of_map, size = ranked(heats[row], rng), len(heats[row])
        rankings[row] = {"map": of_map, "random": at_random(size, of_map.highlighted, rng)}
    outcomes_by_order = outcomes(context, rankings)
    sizes = {row: ranking["map"].highlighted or 1 for row, ranking in rankings.items()}
    unseen = chance_of_answers(context, sizes, "unseen")
    answers = followed_answers(context)
    return text_table(
        context,
        {
            **answers.described,
            "probability": answers.whole,
            "guessing": answers.guessing,
            "unseen": SampledColumn(unseen),
            "highlighted": outcome_column(outcomes_by_order.get("map", {}), "highlighted"),
            **{
                f"{quantity}_{order}": outcome_column(outcomes_by_order.get(order, {}), quantity)
                for order in ("map", "random")
                for quantity in WHAT
            },
        },
        copied=["predicted"],
    )


def outcome_column(outcomes_by_row: Outcomes, quantity: str) -> SampledColumn:
    """Return a quantity of the outcomes as a column, null for the texts that were not asked."""
    kind = pa.int64() if quantity == "highlighted" else pa.float64()
    by_row = {row: getattr(outcome, quantity) for row, outcome in outcomes_by_row.items()}
    return SampledColumn(by_row, kind)


def _findings(results: Results) -> list[Finding]:
    """Return whether answers need the highlighted words and whether these suffice, in shares of the lead.

    With what else the bottom line rests on: in how many texts the map finds the deciding words, and whether the
    weights matter.
    """
    texts = rule.texts_of(results.tables, results.scale.size)
    lead = np.where(
        np.isfinite(texts["gone_map"]), texts["probability"] - texts["guessing"], np.nan
    )
    best, predicted = (
        texts.get("gone_best"),
        texts.get("predicted", results.predicted.astype(np.float64)),
    )
    t = rule.Thresholds() if results.rates is None else results.rates.thresholds
    can_tell = rule.are_enough(
        np.unique(predicted[np.isfinite(lead)], return_counts=True)[1].tolist()
    )
    share = partial(_share, results, lead, predicted, can_tell)
    findings = [
        share(
            "needed",
            of_map=texts["gone_map"],
            random=texts["gone_random"],
            ceiling=None if best is None else np.fmax(best, texts["gone_map"]),
            edges=(t.gone, t.mean_gone),
            topic="the highlighted words are needed",
            question="Does the answer need the words that the map highlights?",
            measure=f"share of the lead over {results.scale.guess} that the answers lose without the map's "
            f"first words, up to a third of them; more than 100% where {results.scale.below}",
        ),
        share(
            "sufficient",
            of_map=rule.kept_alone(texts, "map"),
            random=rule.kept_alone(texts, "random"),
            ceiling=None,
            edges=(t.alone, t.mean_alone),
            topic="the highlighted words suffice",
            question="Does the answer stay with the highlighted words alone?",
            measure=f"share of the lead over {results.scale.guess} that the answers keep with the highlighted "
            f"words alone; below 0% where {results.scale.below}",
        ),
    ]
    if best is not None:
        is_losing, is_gone, stays = rule.losing_and_holding(texts)
        holding = results.finding(
            "holding",
            "share",
            np.where(is_losing, is_gone & stays, np.nan),
            {"not asked": ~np.isfinite(lead), "no few words decide": ~is_losing},
            topic="the map finds the deciding words",
            question="In how many texts does the map find the words that decide?",
            measure="share of the texts with deciding words in which half of the lead is gone without the "
            "map's first words, and half stays with the highlighted words alone",
            meaning="deciding words are some third of the words, without which half of the lead is gone",
        )
        low, high = rule.interval_of_holding(int((is_losing & is_gone & stays).sum()), holding.n)
        holding = replace(holding, low=low, high=high, no_interval="")
        findings.append(judged(holding, (rule.MOST_TEXTS, t.holding), can_tell))
    if "mean_tvd" in texts:
        weights = results.finding(
            "weights",
            results.scale.kind,
            texts["mean_tvd"],
            {},
            topic="the weights matter",
            question="Do the weights matter, and not only which words they are on?",
            measure=f"mean {results.scale.change} under shuffles of the weights",
            meaning=results.scale.meaning,
        )
        findings.append(judged(weights, (0.0, t.weights), can_tell))
    return findings


def _share(
    results: Results,
    lead: NDArray[np.float64],
    predicted: NDArray[np.float64],
    can_tell: bool,
    key: str,
    *,
    of_map: NDArray[np.float64],
    random: NDArray[np.float64],
    ceiling: NDArray[np.float64] | None,
    edges: tuple[float, float],
    topic: str,
    question: str,
    measure: str,
) -> Finding:
    """Return a finding of a ratio of means: of what is lost or kept, and of the lead (NaN if not asked)."""
    is_asked = np.isfinite(lead)
    value = rule.share_of_lead(of_map, lead)
    positive_lead = np.maximum(lead, 0.0)
    results.numbers[key] = TextNumbers(
        np.where(is_asked, of_map, np.nan), "ratio", intervals.UNBOUNDED, positive_lead
    )
    low, high = intervals.of_ratio(
        of_map[is_asked],
        positive_lead[is_asked],
        results.clusters[is_asked],
        results.settings.seed,
        tail=results.tail,
    )
    by_class = {}
    for number, name in enumerate(answer_names(results.classes)):
        is_class = is_asked & (predicted == number)
        if is_class.any():
            of_class = np.where(is_class, lead, np.nan)
            best = np.nan if ceiling is None else rule.share_of_lead(ceiling, of_class)
            is_known = float(lead[is_class].mean()) >= rule.FLAT
            by_class[name] = ClassNumber(
                rule.share_of_lead(of_map, of_class) if is_known else np.nan,
                int(is_class.sum()),
                rule.share_of_lead(random, of_class),
                best,
                int(is_class.sum()),
            )
    # A ratio of hardly anything says nothing, and its interval ends nowhere.
    is_flat = is_asked.any() and float(positive_lead[is_asked].mean()) < rule.FLAT
    if is_flat:
        low = high = np.nan
    distinct = len(np.unique(results.clusters[is_asked]))
    short = results.column("instances", "n_tokens") < PART
    left_out = {
        f"fewer than {PART} words": int((short & ~is_asked).sum()),
        "not sampled": int((~short & ~is_asked).sum()),
    }
    chance = rule.share_of_lead(random, lead)
    largest = np.nan if ceiling is None else rule.share_of_lead(ceiling, lead)
    best_note = f", the best by leave-one-out {signed(largest)}" if np.isfinite(largest) else ""
    if results.scale.unit is not None and is_asked.any():
        best_note += f"; the lead is {results.scale.amount(float(positive_lead[is_asked].mean()))} on average"
    finding = Finding(
        key=key,
        kind="share",
        question=question,
        topic=topic,
        measure=measure,
        value=value,
        low=low,
        high=high,
        n=int(is_asked.sum()),
        left_out={reason: count for reason, count in left_out.items() if count},
        reading="hardly any lead to lose"
        if is_flat
        else f"{signed_percent(value)} of the lead, random words {signed_percent(chance)}",
        level="cannot tell",
        meaning=f"random words {signed(chance)}{best_note}",
        distinct=distinct,
        by_class=by_class,
        no_interval=NO_LEAD.format(results.scale.guess, rule.FLAT)
        if is_flat
        else ""
        if np.isfinite(low)
        else intervals.why_none(distinct, "ratio"),
    )
    return judged(finding, edges, can_tell and not is_flat)


def _cost(probe: CostProbe) -> float:
    """Return seconds: along the map and random orders, and with words alone or among others'."""
    passes = (1 + ORDERS) * prefix_passes(probe.context.texts) + 5 * ORDERS
    return probe.reading(passes, TEXTS)


def _interventions(row: Row) -> list[Intervention]:
    stays = row["highlights"].get("alone_stays_map")
    name = "read again with the highlighted words alone"
    return [Intervention(name, None, None if stays is None else 1.0 - stays)]


EXPERIMENT = Experiment(
    "highlights",
    highlights,
    columns=COLUMNS,
    needs=("reading",),
    place=12,
    findings=_findings,
    interventions=_interventions,
    cost=_cost,
)
