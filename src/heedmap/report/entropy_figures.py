"""The sharpness of attention: its entropy against the length of the text."""

import math

import altair as alt
import numpy as np

from heedmap.experiments.findings import AuditResult
from heedmap.report.charts import QUIET, Figure, Key, colour, plot, specification
from heedmap.report.grouping import division, texts
from heedmap.report.wording import column
from heedmap.settings.audit import AuditSettings

POINTS = 800  # a larger audit is sampled
TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
FEWEST_TICKS = 3


def entropy(audit: AuditResult) -> list[Figure]:
    """Draw a point per text, by predicted class; the line is the entropy of uniform attention, ln n.

    In Jain & Wallace's released code (`plot_entropy`), not in their paper.
    """
    length = column(audit.tables, "instances", "n_tokens")
    nats = column(audit.tables, "instances", "entropy")
    short = length < 2
    defined = np.flatnonzero(np.isfinite(nats) & ~short)
    if not len(defined):
        return []
    seed = (audit.settings.audit or AuditSettings()).seed
    rng = np.random.default_rng([seed, *b"entropy"])
    sample = np.sort(rng.permutation(defined)[:POINTS])
    divided = division(audit)
    data = [
        {
            "series": divided.labels[divided.series[i]],
            "length": int(length[i]),
            "entropy": float(nats[i]),
            "rows": [int(i)],
        }
        for i in sample
    ]
    shortest, longest = int(length[defined].min()), int(length[defined].max())
    ticks = [t for t in TICKS if shortest <= t <= longest]
    if len(ticks) < FEWEST_TICKS:  # few lengths: evenly spaced ticks, with both ends
        ticks = sorted({round(t) for t in np.geomspace(shortest, longest, 5)})
    x = alt.X(
        "length:Q",
        title="words in the text (logarithmic)",
        scale=alt.Scale(type="log", domain=[0.95 * shortest, 1.05 * longest], nice=False),
        axis=alt.Axis(values=ticks, format="d", labelOverlap=False),
    )
    y = alt.Y(
        "entropy:Q",
        title="entropy (nats)",
        scale=alt.Scale(domain=[0, 1.04 * max(math.log(longest), float(nats[defined].max()))]),
    )
    points = (
        plot(data)
        .mark_circle(size=22, opacity=1, fillOpacity=0.5)
        .encode(
            x=x, y=y, color=colour(divided.labels), tooltip=["series:N", "length:Q", "entropy:Q"]
        )
    )
    line = (
        plot([{"length": n, "entropy": math.log(n)} for n in sorted({shortest, longest})])
        .mark_line(strokeDash=[6, 4], strokeWidth=1.5, color=QUIET)
        .encode(x=x, y=y)
    )
    share = nats[defined] / np.log(length[defined])
    present = [i for i in range(len(divided.labels)) if (divided.series[defined] == i).any()]
    undefined = int((~np.isfinite(nats) & ~short).sum())
    return [
        Figure(
            key="entropy",
            title="How sharp is the attention?",
            n=texts(
                len(defined),
                {
                    "of them drawn, a seeded sample": len(sample)
                    if len(sample) < len(defined)
                    else 0,
                    "of one word left out": int(short.sum()),
                    "without an entropy left out": undefined,
                },
            ),
            caption=(
                "Entropy of each text's heat map against the number of its words. On the dashed line "
                "attention is uniform, ln n; at 0 it is on one word. Over all texts it has "
                f"{share.mean():.0%} of the entropy of uniform attention. Drawn by the code of Jain "
                "& Wallace (2019), not in the paper."
            ),
            spec=specification(alt.layer(line, points), 220),
            keys=[
                *(
                    divided.key(i, nats[defined][divided.series[defined] == i], mean=False)
                    for i in present
                ),
                Key("uniform attention, ln n", QUIET, "dashed"),
            ],
            notes=divided.notes,
        )
    ]
