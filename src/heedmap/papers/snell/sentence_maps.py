"""One text as the slides draw it: a translation's attention as a matrix, r' of the twin beside α."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float
from numpy.typing import NDArray

from heedmap.data.pieces import Pieces
from heedmap.experiments.rounding import number
from heedmap.files import manifest
from heedmap.papers.kit.translators import Encoded
from heedmap.papers.snell.translation_task import sample
from heedmap.papers.snell.word_proxies import Scores
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification
from heedmap.report.dynamics_figures import LONGEST, right_rows
from heedmap.training.dynamics import recorded_in

SENTENCE = "sentence.json"
SHORT, WIDE = 4, 14  # sub-words of a side that make a matrix which is neither trivial nor too wide
MARGIN, ABOVE, ROW = 3.5, 3.5, 20  # columns, rows, pixels
PANELS = {
    "attention": ("attention α", "the weight"),
    "relevance": (
        "relevance in the twin",
        "p(y | d, context := h) in the model that was trained with uniform attention",
    ),
    "co-occurrence": (
        "co-occurrence",
        "how much more often the two sub-words occur in the same pairs of training sentences than if they "
        "were independent",
    ),
}


class Sentence(NamedTuple):
    """A recorded sentence: its sub-words, its first target position among the recorded ones, and a map."""

    source: list[str]
    target: list[str]
    first: int
    cooccurrence: list[list[float]]


def write_sentence(folder: Path, test: Encoded, pieces: Pieces, lexicon: Scores) -> None:
    """Write the first recorded sentence of SHORT to WIDE sub-words on both sides, else the shortest one.

    Its co-occurrence is of the training pairs, which are not at hand when the figures are drawn again.
    """
    recorded = sample(test)
    sizes = [max(len(test.source[row]), len(test.target[row])) for row in recorded]
    fitting = [
        index
        for index, row in enumerate(recorded)
        if min(len(test.source[row]), len(test.target[row])) >= SHORT and sizes[index] <= WIDE
    ]
    chosen = fitting[0] if fitting else int(np.argmin(sizes))
    row = recorded[chosen]
    source, target = test.source[row], test.target[row]
    content = Sentence(
        [pieces.token(symbol) for symbol in source],
        [pieces.token(symbol) for symbol in target],
        sum(len(test.target[before]) for before in recorded[:chosen]),
        lexicon(source, target).tolist(),
    )
    manifest.write(folder / SENTENCE, json.dumps(content._asdict(), ensure_ascii=False))


def matrix_figures(folder: Path, model: Path, twin: Path) -> list[Figure]:
    """Draw attention, the twin's relevance and co-occurrence of the written sentence; none without it."""
    of_model, of_twin = (recorded_in(run / "dynamics") for run in (model, twin))
    if not (folder / SENTENCE).exists() or of_model is None or of_twin is None:
        return []
    sentence = Sentence(**json.loads(manifest.read(folder / SENTENCE)))
    maps = {
        "attention": _last(of_model, "attention", sentence),
        "relevance": np.exp(_last(of_twin, "relevance", sentence)),
        "co-occurrence": np.maximum(0.0, np.array(sentence.cooccurrence)),
    }
    # A figure each: the page puts them beside each other, wide enough for the words.
    return [
        Figure(
            key=f"snell-matrix-{name}",
            title=PANELS[name][0].capitalize() + " of a translation",
            n="one test sentence, seed 0, after the last step",
            caption="Rows: the right translation; columns: the source. Darkness: "
            f"{PANELS[name][1]}, as a share of the row's largest, which is outlined.",
            spec=_matrix(sentence, PANELS[name][0], values),
        )
        for name, values in maps.items()
    ]


def _last(recorded: pa.Table, quantity: str, sentence: Sentence) -> Float[np.ndarray, "T S"]:
    """Return a recorded map of the sentence after the last step."""
    positions = (
        _final(recorded)
        .sort_by("row")[quantity]
        .slice(sentence.first, len(sentence.target))
        .to_pylist()
    )
    return np.array(positions, dtype=np.float64)


def _final(recorded: pa.Table) -> pa.Table:
    """Return the test texts after the last step."""
    test = recorded.filter(pc.equal(recorded["split"], "test"))
    return test.filter(pc.equal(test["step"], pc.max(test["step"])))


def shares(values: Float[np.ndarray, "T S"]) -> Float[np.ndarray, "T S"]:
    """Return each number as a share of the largest of its row; 0 where nothing in the row is above 0.

    >>> shares(np.array([[1.0, 2.0], [0.0, 0.0]])).tolist()
    [[0.5, 1.0], [0.0, 0.0]]
    """
    largest = values.max(-1, keepdims=True)
    divided: NDArray[np.float64] = np.divide(
        values, largest, out=np.zeros_like(values), where=largest > 0
    )
    return divided


def _matrix(sentence: Sentence, name: str, values: Float[np.ndarray, "T S"]) -> dict[str, Any]:
    """Return a map as a chart with places of its own: its words stand above it, and it scales with the page."""
    steps, size = len(sentence.target), len(sentence.source)
    strength = shares(values)
    best = strength.argmax(-1)
    cells: list[dict[str, Any]] = [
        {
            "x": MARGIN + column, "x2": MARGIN + column + 1, "y": step, "y2": step + 1, "map": name,
            "source": sentence.source[column], "target": sentence.target[step],
            "value": number(values[step, column]), "strength": float(strength[step, column]),
            "best": bool(column == best[step] and strength[step, column] > 0),
        }
        for step in range(steps)
        for column in range(size)
    ]  # fmt: skip
    across = [
        {"x": MARGIN + column + 0.5, "y": -0.2, "text": token.strip()}
        for column, token in enumerate(sentence.source)
    ]
    down = [
        {"x": MARGIN - 0.3, "y": step + 0.5, "text": token.strip()}
        for step, token in enumerate(sentence.target)
    ]
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, MARGIN + size], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[steps, -ABOVE], nice=False))
    boxes = plot(cells).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q", tooltip=["map:N", "target:N", "source:N", "value:N"]
    )
    aligned: tuple[Literal["left", "right"], ...] = ("left", "right")
    chart = alt.layer(
        boxes.mark_rect(color=PALETTE[0], stroke=QUIET, strokeWidth=0.4, strokeOpacity=0.5).encode(
            fillOpacity=alt.FillOpacity("strength:Q", scale=None)
        ),
        boxes.transform_filter(alt.datum.best).mark_rect(
            fillOpacity=0, stroke=PALETTE[1], strokeWidth=2
        ),
        *(
            plot(texts)
            .mark_text(align=align, baseline="middle", angle=angle, fontSize=10)
            .encode(x=x, y=y, text="text:N")
            for texts, align, angle in zip((across, down), aligned, (270, 0), strict=True)
        ),
    )
    return specification(chart, round((steps + ABOVE) * ROW))


def text_figures(model: Path, twin: Path, classes: Sequence[str]) -> list[Figure]:
    """Draw α of the model and r' of its twin for the first test text that fits and that both answer."""
    of_model, of_twin = (recorded_in(run / "dynamics") for run in (model, twin))
    if of_model is None or of_twin is None:
        return []
    finals = _final(of_model), _final(of_twin)
    of_both = set(right_rows(finals[1]))
    rows_of_both = [row for row in right_rows(finals[0]) if row in of_both]
    if not rows_of_both:
        return []
    named = of_model.filter(
        pc.and_(pc.is_valid(of_model["tokens"]), pc.equal(of_model["split"], "test"))
    )
    name_row, model_row, twin_row = (
        table.filter(pc.equal(table["row"], rows_of_both[0])).to_pylist()[0]
        for table in (named, *finals)
    )
    return [_one_text(name_row, model_row, twin_row, classes)]


def _one_text(
    named: dict[str, Any], model: dict[str, Any], twin: dict[str, Any], classes: Sequence[str]
) -> Figure:
    series = {
        "attention α of the model": model["attention"],
        "relevance r′ in the twin": twin["relevance"],
    }
    labels = [f"{i + 1} {token.strip()}" for i, token in enumerate(named["tokens"][:LONGEST])]
    values = []
    for name, numbers in series.items():
        largest = float(np.abs(np.float64(numbers)).max()) or 1.0
        values += [
            {"series": name, "token": token, "value": float(value) / largest}
            for token, value in zip(labels, numbers, strict=True)
        ]
    names = list(series)
    chart = (
        plot(values)
        .mark_bar()
        .encode(
            x=alt.X("value:Q", title="share of the largest size in the text"),
            y=alt.Y(
                "token:N", sort=labels, title=None,
                axis=alt.Axis(labelLimit=140, ticks=False, domain=False),
            ),
            yOffset=alt.YOffset("series:N", sort=names),
            color=colour(names),
            tooltip=["token:N", "series:N", alt.Tooltip("value:Q", format=".2f")],
        )
    )  # fmt: skip
    return Figure(
        key="snell-twin",
        title="Does the twin's relevance look like the attention?",
        n=f"one test text, {classes[named['label']]}, seed 0, after the last step",
        caption="The first recorded text of at most 30 words that model and twin both answer. Relevance "
        "to the right speaks for the text's label, to the left against it; attention is above 0.",
        spec=specification(chart, ROW * len(labels)),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(names)],
    )
