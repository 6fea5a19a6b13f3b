"""How different can the attention be while the prediction stays? (Jain & Wallace 2019, experiment 2b)"""

import time
from collections.abc import Container
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.counterfactual import exact
from heedmap.counterfactual.jain_wallace_autograd import descend
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import BACKWARD, CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.adversary_bounds import enclose
from heedmap.experiments.methods.adversary_search import most_different_met, search_all
from heedmap.experiments.methods.adversary_weights import FILE, rows_kept
from heedmap.experiments.methods.readout import is_linear, linear
from heedmap.experiments.questions.stability import noise
from heedmap.experiments.registry import Experiment, HeatMap, Intervention, Row
from heedmap.experiments.results import Results, mean, percent
from heedmap.experiments.text_tables import MAP_FACTS, text_table
from heedmap.measures import LN2
from heedmap.models.layered import Layered
from heedmap.models.trace import Trace
from heedmap.settings.models import PLAIN, SLOW

MOST_CLASSES = 64  # for bounds, computed per pair of classes: a thousand have half a million pairs
ADVERSARIES = 5  # in the paper's search
BOUNDS = 700  # cost of the lower bound, in units of one two-class optimum
ALL_EQUAL = "the outputs of all texts are the same, so that they have no deviations"
NOT_ASKED = "not asked: the flow would have to be recomputed for every weighting that is tried"
HELD = "the map hardly follows the layer's weights, whatever is predicted"
VERY_DIFFERENT = 0.4  # of ln 2
TIMED = 3  # steps of a search that its forecast takes


COLUMNS = Columns(
    "One row per text. An adversary is the heat map farthest from the model's (Jensen-Shannon divergence, JSD) "
    "among those with the same prediction: within ε (TVD), of a model that gives a number within ε standard "
    "deviations of all outputs. Where the read-out is not linear, or there are more "
    f"than {MOST_CLASSES} classes, it is searched for, for a sample; null for the other texts.",
    {
        **shared("row", "predicted", "n_tokens", "max_attention"),
        "jsd": (
            "nats, 0 to ln 2",
            "the largest JSD found: for two classes or a number the global optimum where the read-out is "
            "linear, else a lower bound",
        ),
        "jsd_upper": (
            "nats, 0 to ln 2",
            "no heat map with this prediction is farther; `jsd` if exact",
        ),
        "attention": ("list per token, from 0", "the adversary: the heat map that attains `jsd`"),
        "search_jsd": (
            "nats, 0 to ln 2",
            f"what the search of Jain & Wallace finds ({ADVERSARIES} adversaries, the last iterates); 0 where "
            "it finds nothing",
        ),
        "search_found": ("true or false", "whether that search ends within ε of the prediction"),
        "curve_lower": (
            "list per ε of `curve`",
            "`jsd` for each ε; for more than two classes looser than at ε itself",
        ),
        "curve_upper": ("list per ε of `curve`", "`jsd_upper` for each ε"),
        "dimension": (
            "count, from 0",
            "dimension of the weightings with exactly the same prediction, for weights without zeros: "
            "n_tokens − 2 as a rule for two classes",
        ),
        "tvd": (
            "0 to 1",
            "how far the adversary's prediction is (TVD; of a number |difference| in its unit); only where it "
            "is searched for",
        ),
        "on_text_before": (
            "0 to 1",
            "share of the weights' mass that is on words; only where it is searched for",
        ),
        "on_text": ("0 to 1", "the same of the adversary's weights"),
    },
)


def adversary(context: AuditContext) -> pa.Table:
    """Return the largest Jensen-Shannon divergence from the model's weights at (almost) the same prediction.

    Linear read-outs of at most 64 classes: for two classes the global optimum; for more, `attention` attains
    `jsd`, and no weighting exceeds `jsd_upper`. The paper's gradient search (5 adversaries, 500 steps, last
    iterate) is then one of the starts for `jsd`, which is therefore no smaller. `jsd` does not depend on the
    order of the tokens.

    Elsewhere a sample of the texts is searched on the model itself, and `jsd_upper` bounds the divergence of
    any heat map of the text. The paper's search also runs where there is one row of weights and the settings
    give it steps.
    """
    first_trace = next(context.traces, None)
    columns = (
        enclose(context) if first_trace is None or is_enclosed(first_trace) else search_all(context)
    )
    return text_table(context, columns, copied=MAP_FACTS)


def is_enclosed(trace: Trace) -> bool:
    """Return whether the optimum or bounds of it are computed; otherwise it is searched for."""
    return is_linear(trace) and trace.logits.shape[-1] <= MOST_CLASSES


def is_searched(columns: Container[str]) -> bool:
    """Return whether a table of these columns comes from a search on the model: no optimum, bounds or curve."""
    return "curve_lower" not in columns


def is_exact(columns: Container[str], classes: int) -> bool:
    """Return whether the most different weights are the global optimum.

    They are where the read-out is linear, for two classes or a number.
    """
    return classes <= 2 and not is_searched(columns)


def _findings(results: Results) -> list[Finding]:
    return [_freedom(results)]


def _freedom(results: Results) -> Finding:
    """Ask for the most different heat map with the same prediction."""
    short, view, settings = results.short, results.view, results.settings
    jsd = np.where(short, np.nan, results.column("adversary", "jsd"))
    upper = results.column("adversary", "jsd_upper")[np.isfinite(jsd)]
    upper_mean = mean(upper) / LN2
    finding = results.finding(
        "adversary",
        "freedom",
        jsd / LN2,
        {
            NOT_ASKED: np.full(len(jsd), view in SLOW),
            "one token: no other weights": short,
            ALL_EQUAL: np.full(len(jsd), np.isnan(results.scale.size)),
            "not sampled for the search": np.isnan(jsd) & ~short,
        },
        topic="another map, same prediction",
        question="Could a very different heat map stand beside the same prediction?",
        measure=(
            "mean of the largest JSD from the model's heat map within "
            f"{results.scale.within(settings.epsilon)}, as a share of the maximum ln 2"
        ),
        meaning="0 = no other heat map, 1 = one with nothing in common; one such map is enough, however rare",
        summary="; ".join(
            filter(None, (_how_found(results, np.isfinite(jsd), upper_mean), _beside(results)))
        ),
    )
    if view in SLOW:
        return replace(finding, reading="not asked of this view")
    if view == "rollout" and upper_mean < VERY_DIFFERENT:
        # The layers below and the residual connection fix the map, not the prediction.
        return replace(finding, reading=HELD, level="for comparison")
    return finding


def _beside(results: Results) -> str:
    """Say how far another training's map is: the noise that the distance is read against."""
    seed_distance = noise(results) / LN2
    return (
        "" if np.isnan(seed_distance) else f"the map of another seed is at {_number(seed_distance)}"
    )


def _how_found(results: Results, is_defined: NDArray[np.bool_], upper_mean: float) -> str:
    settings, classes = results.settings, len(results.classes)
    columns = results.tables["adversary"].column_names
    bound = f"at least this, at most {_number(upper_mean)} on average"
    if results.view == "rollout":
        bound += " (under any weights of the layer, whatever is predicted)"
    papers = ""
    if "search_jsd" in columns:
        jsd = results.column("adversary", "search_jsd")[is_defined]
        papers = f"the paper's search finds {_number(mean(jsd) / LN2)}"
    if is_exact(columns, classes):
        return papers
    if not is_searched(columns):
        return f"{bound}; {papers}"
    if papers:
        pairs = "query" in results.tables["instances"].column_names
        reason = "" if pairs else f" ({classes} classes are too many for a bound of each two)"
        return f"found by search{reason}, so {bound}; {papers}"
    times = f"{settings.search_restarts} starts of {settings.search_steps} steps"
    on_text = [mean(results.column("adversary", name)) for name in ("on_text_before", "on_text")]
    return (
        f"found by search ({times}), so {bound}; of the {'layer’s ' if results.derived else ''}mass "
        f"{percent(on_text[0])} are on words before, {percent(on_text[1])} after"
    )


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "none"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _heat_maps(row: Row) -> list[HeatMap]:
    instance, adversarial = row["instances"], row["adversary"]
    if adversarial["attention"] is None:  # the text was not sampled for the search
        return []
    exact = is_exact(adversarial, len(instance["probabilities"]))
    name = "adversarial attention" + ("" if exact else " (best found)")
    weights = adversarial["attention"] if len(instance["tokens"]) > 1 else None
    return [HeatMap(name, "attention", weights)]


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    jsd, upper = row["adversary"]["jsd"], row["adversary"]["jsd_upper"]
    free = ("dimensions of freedom, same output", row["adversary"].get("dimension"))
    if jsd == upper:
        return [("largest JSD", jsd), free]
    return [("largest JSD, at least", jsd), ("at most", upper), free]


def _interventions(row: Row) -> list[Intervention]:
    numbers = row["adversary"]
    name = "the most different weights found with almost the same prediction"
    # Without a column of its own the change is within ε, and the page computes it. Of a number it is no TVD.
    is_shown = "tvd" in numbers and len(row["instances"]["probabilities"]) > 1
    return [Intervention(name, numbers["tvd"], None)] if is_shown else []


def _cost(probe: CostProbe) -> float:
    """Return seconds: restarts × steps passes above the weights for the search; for the bounds, one two-class
    optimum per pair of classes and ε.
    """
    context, settings = probe.context, probe.context.settings
    model, texts = context.model, len(context.lengths)
    if isinstance(model, Layered):
        view = model.map_on_trial().view
        searched = probe.sampled(settings.search_instances) * texts
        searches = (
            0 if view in SLOW else 1 if view in PLAIN else 2
        )  # the weights first, then the map
        steps = searches * settings.search_restarts * settings.search_steps
        return searched * steps * probe.again * BACKWARD
    classes = probe.trace.logits.shape[-1]
    if not is_enclosed(probe.trace):
        return probe.sampled(settings.search_instances) * texts * _search_seconds(probe)
    descent = ADVERSARIES * settings.descent_steps
    weights, relevance, bias = linear(probe.trace)
    start = time.perf_counter()
    optimum = exact.adversary if classes > 1 else exact.number_adversary
    optimum(weights, relevance[..., :2], bias[:2], probe.trace.mask, settings.epsilon)
    seconds = (time.perf_counter() - start) / len(weights)
    pairs = classes * (classes - 1) / 2
    tolerances = len({*settings.curve, settings.epsilon})
    enclosing = seconds * (pairs + BOUNDS * (classes > 2)) * tolerances
    return probe.squares() * enclosing + texts * descent * probe.again


def _search_seconds(probe: CostProbe) -> float:
    """Return how long a text is searched for, measured by a few steps on the batch of the forecast."""
    context, settings, trace = probe.context, probe.context.settings, probe.trace
    model, generators = context.model, context.torch_generators("adversary", trace.rows)
    seconds = []
    for steps in (0, TIMED):
        start = time.perf_counter()
        short_search = settings.model_copy(update={"search_steps": steps})
        most_different_met(model, trace, short_search, generators)
        seconds.append(time.perf_counter() - start)
    total = seconds[0] + (seconds[1] - seconds[0]) / TIMED * settings.search_steps
    if trace.attention.shape[1] == 1:
        predict, weights = partial(model.predict, trace), trace.attention[:, 0]
        start = time.perf_counter()
        descend(predict, weights, trace.mask, steps=TIMED, generator=generators[0])
        total += (time.perf_counter() - start) / TIMED * settings.descent_steps
    tokens = float(trace.mask.sum())
    return max(0.0, total) * float(context.lengths.mean()) / tokens


def _about(context: AuditContext) -> dict[str, object]:
    """Count the searched texts, and those whose weights are kept."""
    if not isinstance(context.model, Layered):
        return {}
    file = context.kept[FILE] if context.folder is None else context.folder.folder / FILE
    jsd = context.table("adversary")["jsd"]
    counts = {"kept": len(rows_kept(file)), "searched": len(jsd) - jsd.null_count}
    return {"adversary_weights": counts}


EXPERIMENT = Experiment(
    "adversary",
    adversary,
    columns=COLUMNS,
    place=70,
    findings=_findings,
    figures=(
        "heedmap.report.violin_figures:most_different",
        "heedmap.report.adversary_figures:jsd_histograms",
        "heedmap.report.adversary_figures:exact_and_search",
        "heedmap.report.adversary_figures:curve",
    ),
    heat_maps=_heat_maps,
    facts=_facts,
    interventions=_interventions,
    cost=_cost,
    files=lambda model: [FILE] if isinstance(model, Layered) else [],
    about=_about,
    in_chunks=True,
)
