"""The picture of a comparison: a cell per row and question, level as colour and sign, number as text."""

from collections.abc import Sequence
from textwrap import wrap

import altair as alt

from heedmap.comparisons.questions import SEVERAL, ComparedQuestion
from heedmap.comparisons.seed_rows import Row
from heedmap.experiments.levels import COLOURS, SIGNS
from heedmap.experiments.rounding import number
from heedmap.report.charts import QUIET, Figure, Key, plot, specification

HEIGHT = 28  # of a question, in pixels
WIDTH = 54  # of a row
LETTERS = 26  # of a line of a question's name


def answers_figure(compared: Sequence[Row], questions: Sequence[ComparedQuestion]) -> Figure:
    """Draw rows × questions."""
    colours = {str(level): colour for level, colour in COLOURS.items()} | {SEVERAL: QUIET}
    values = [
        {
            "question": _broken(question.topic),
            "row": row.letter,
            "name": row.name,
            "level": answer.level,
            "text": f"{answer.sign} {number(answer.value)}" if answer.asked else "missing",
            "measure": question.finding.measure,
        }
        for question in questions
        for row, answer in zip(compared, question.answers, strict=True)
    ]
    topics = list(dict.fromkeys(value["question"] for value in values))
    letters = [row.letter for row in compared]
    base = plot(values).encode(
        x=alt.X("row:N", title=None, sort=letters, axis=alt.Axis(orient="top", labelAngle=0)),
        y=alt.Y(
            "question:N",
            title=None,
            sort=topics,
            axis=alt.Axis(labelExpr=r"split(datum.label, '\n')"),
        ),
        tooltip=["question:N", "name:N", "level:N", "text:N", "measure:N"],
    )
    quiet = alt.datum.level == "for comparison"
    cells = base.mark_rect().encode(
        fillOpacity=alt.condition(quiet, alt.value(0.15), alt.value(0.5)),
        color=alt.Color(
            "level:N",
            scale=alt.Scale(domain=[*colours, "missing"], range=[*colours.values(), "transparent"]),
            legend=None,
        ),
    )
    shown = {value["level"] for value in values}
    signs = {**{str(level): sign for level, sign in SIGNS.items()}, SEVERAL: "≠"}
    layers = alt.layer(cells, base.mark_text().encode(text="text:N"))
    # Of a fixed width per row, so that numbers never overlap: many rows scroll.
    spec = specification(layers, HEIGHT * len(topics)) | {"width": {"step": WIDTH}}
    return Figure(
        key="answers",
        title="Every row's answer to every question",
        n=f"{len(compared)} rows, {len(questions)} questions",
        caption=(
            "A cell shows the level by sign and colour, and the number, over seeds their mean. Numbers of "
            "different questions have different scales; only a level says for or against a map."
        ),
        spec=spec,
        keys=[
            Key(f"{signs[level]} {level}", colour)
            for level, colour in colours.items()
            if level in shown
        ],
    )


def _broken(topic: str) -> str:
    """Break a question's name into two lines where it is long."""
    return "\n".join(wrap(topic, LETTERS, max_lines=2, placeholder=" …"))
