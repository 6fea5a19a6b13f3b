"""Figures of the most different heat map: beside the paper's search, and by tolerance ε."""

import altair as alt
import numpy as np

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.adversary import is_exact, is_searched
from heedmap.experiments.scales import scale_of
from heedmap.measures import LN2
from heedmap.report.agreement_figures import PAPER
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, plot, specification
from heedmap.report.densities import quartiles
from heedmap.report.grouping import Division, division, of_words
from heedmap.report.histograms import Axis, by_class
from heedmap.report.wording import column, derived, tolerance

JSD = Axis("largest JSD", 0, 0.7, 40, (0, 0.2, 0.4, 0.6), (LN2, "ln 2: nothing in common"), "JSD")
SEARCHED = f"as found by the gradient search of {PAPER}, which gives a lower bound"


def jsd_histograms(audit: AuditResult) -> list[Figure]:
    """Draw the largest JSD by predicted class: ours, and the paper's search where the table has it."""
    if "adversary" not in audit.tables:
        return []
    columns = audit.tables["adversary"].column_names
    if is_exact(columns, len(audit.classes)):
        method_text, source = "exact optimum", "the global optimum, where the paper has a search"
    elif is_searched(columns):
        method_text, source = (
            "at least, by search",
            "the best that a search on the model itself meets",
        )
    else:
        method_text, source = "at least", "with more than two classes a lower bound"
    compared = (
        "the heat map of the model's weights and that of others"
        if derived(audit)
        else "the model's weights and others"
    )
    divided = division(audit)
    figures = []
    for key, name, method, origin in (
        ("adversary-histogram", "jsd", method_text, source),
        ("search-histogram", "search_jsd", "the paper's search", SEARCHED),
    ):
        values, n = of_words(audit, column(audit.tables, "adversary", name))
        if not np.isfinite(values).any():
            continue
        spec, keys, reading = by_class(values, divided, JSD)
        figures.append(
            Figure(
                key=key,
                title=f"How different may the heat map be? ({method})",
                n=n,
                caption=(
                    f"The largest JSD between {compared} that move the "
                    f"prediction by at most {tolerance(audit)}: {origin}. {reading}; the "
                    f"dashed line is ln 2, nothing in common (as {PAPER}, experiment 2b)."
                ),
                spec=spec,
                keys=keys,
                notes=[*(_missed(audit) if name == "search_jsd" else []), *divided.notes],
            )
        )
    return figures


def exact_and_search(audit: AuditResult) -> list[Figure]:
    """Draw histograms of the largest JSD: ours and the paper's search."""
    if "adversary" not in audit.tables:
        return []
    exact = is_exact(audit.tables["adversary"].column_names, len(audit.classes))
    ours, n = of_words(audit, column(audit.tables, "adversary", "jsd"))
    theirs, _ = of_words(audit, column(audit.tables, "adversary", "search_jsd"))
    if not np.isfinite(ours).any() or not np.isfinite(theirs).any():
        return []
    divided = Division(
        ["exact optimum" if exact else "best found (at least)", "the paper's search"],
        np.repeat([0, 1], len(ours)),
        by_class=False,
    )
    spec, keys, reading = by_class(
        np.concatenate([ours, theirs]), divided, JSD, np.tile(np.arange(len(ours)), 2)
    )
    return [
        Figure(
            key="exact-search",
            title=f"{'The optimum' if exact else 'What is found here'} and the paper's search",
            n=n,
            caption=(
                f"The largest JSD at the same prediction as computed here, and {SEARCHED}. "
                f"{reading}, the dashed one ln 2."
            ),
            spec=spec,
            keys=keys,
            notes=_missed(audit),
        )
    ]


def _missed(audit: AuditResult) -> list[str]:
    """Return a note with the number of texts where the paper's search found nothing."""
    search_found, _ = of_words(audit, column(audit.tables, "adversary", "search_found"))
    missed = int((search_found == 0).sum())
    return [f"the search found nothing in {missed} texts, which count as 0"] if missed else []


def curve(audit: AuditResult) -> list[Figure]:
    """Draw the largest JSD against the tolerance ε of the prediction."""
    if "adversary" not in audit.tables or audit.settings.audit is None:
        return []
    length = column(audit.tables, "instances", "n_tokens")
    _, n = of_words(audit, length)
    long_enough = length >= 2
    steps = audit.settings.audit.curve
    if not long_enough.any() or not steps:
        return []
    table = audit.tables["adversary"]
    if is_searched(table.column_names):
        return []
    lower = np.array(table["curve_lower"].to_pylist(), dtype=float)[long_enough]
    upper = np.array(table["curve_upper"].to_pylist(), dtype=float)[long_enough]
    exact = is_exact(table.column_names, len(audit.classes))
    data = [
        {"epsilon": e, "lower": lo, "upper": up, "low": q[0], "high": q[1]}
        for e, lo, up, q in zip(
            steps,
            lower.mean(0).tolist(),
            upper.mean(0).tolist(),
            quartiles(list(lower.T)),
            strict=True,
        )
    ]
    base = plot(data).encode(
        x=alt.X(
            "epsilon:Q",
            title=f"the prediction may move by ({scale_of(audit.tables['instances'], audit.classes).short})",
            scale=alt.Scale(type="symlog", constant=0.001, nice=False),
            axis=alt.Axis(values=list(steps), labelOverlap=True),
        ),
        tooltip=["epsilon:Q", "lower:Q", "upper:Q", "low:Q", "high:Q"],
    )
    scale = alt.Scale(domain=[0, 0.72], nice=False)
    band = base.mark_area(fillOpacity=0.2, color=PALETTE[0]).encode(
        y=alt.Y("low:Q", title="largest JSD", scale=scale), y2="high:Q"
    )
    line = base.mark_line(point={"color": PALETTE[0]}, color=PALETTE[0], strokeWidth=2).encode(
        y=alt.Y("lower:Q", scale=scale)
    )
    keys = [
        Key("mean" if exact else "mean, at least", PALETTE[0], "solid"),
        Key("middle half of the texts", PALETTE[0] + "55"),
    ]
    layers: list[alt.Chart] = [band, line]
    if not exact:
        layers.append(
            base.mark_line(point={"color": PALETTE[1]}, color=PALETTE[1], strokeDash=[7, 4]).encode(
                y=alt.Y("upper:Q", scale=scale)
            )
        )
        keys.append(Key("mean, at most", PALETTE[1], "dashed"))
    top = plot([{"at": LN2, "what": "ln 2: nothing in common"}])
    layers.append(top.mark_rule(strokeDash=[3, 3], color=QUIET).encode(y="at:Q", tooltip="what:N"))
    return [
        Figure(
            key="curve",
            title="The freedom of the heat map",
            n=n,
            caption=(
                "How different the heat map may be when the prediction may move by so much (axis "
                "stretched near 0); the dashed grey line is ln 2. "
                + (
                    "What stands at 0 is possible without moving the prediction at all. "
                    if exact
                    else "The truth lies between the two lines; at 0 the lower one finds little. "
                )
                + f"Not in {PAPER}, experiment 2b, which looks at 0.01 only."
            ),
            spec=specification(alt.layer(*layers), 220),
            keys=keys,
        )
    ]
