"""The page of a comparison: one self-contained HTML file."""

from math import isfinite

from heedmap.comparisons.comparison_figure import answers_figure
from heedmap.comparisons.differences import Difference
from heedmap.comparisons.map_differences import MapDifferences
from heedmap.comparisons.side_by_side import MOST_DIFFERENT, SideBySide
from heedmap.experiments.levels import SIGNS
from heedmap.experiments.rounding import number
from heedmap.report.inline_styles import InlineStyles
from heedmap.report.scripts import bundle, own_script, safe_json
from heedmap.report.templates import environment
from heedmap.report.wording import counts, model_text, plural, source_text


def page(comparison: SideBySide) -> str:
    """Render the page. The same comparison gives the same bytes; all text from the data is escaped."""
    figure = answers_figure(comparison.rows, comparison.questions)
    template = environment(comparison.nouns).get_template("comparison.html")
    data = {"runs": [run.name for run in comparison.runs], "texts": comparison.texts.texts}
    return template.render(
        comparison=comparison,
        rows=[
            {
                "row": row,
                "runs": ", ".join(run.name for run in row.runs),
                "data": source_text(row.runs[0].audit.settings.data.source),
                "model": model_text(row.runs[0].audit),
                "verdict": verdict,
            }
            for row, verdict in zip(comparison.rows, comparison.verdicts, strict=True)
        ],
        signs=SIGNS,
        differences=[
            _difference(comparison, question.topic, difference)
            for question in comparison.questions
            for difference in question.differences
        ],
        figures=[(figure, safe_json(figure.spec))],
        pairs=[_pair(comparison, pair) for pair in comparison.maps],
        most=MOST_DIFFERENT,
        texts=comparison.nouns.reword(plural(comparison.texts.total, "text")),
        data=safe_json(data),
        scripts=[bundle(), own_script("comparison.js")],
        styled=InlineStyles(),
    )


def _difference(comparison: SideBySide, topic: str, difference: Difference) -> tuple[str, ...]:
    """Return the cells of a difference: what, of whom, both intervals, its texts and the word."""
    letters = (comparison.rows[i].letter for i in (difference.first, difference.second))
    ends = [(difference.low, difference.high), (difference.strict_low, difference.strict_high)]
    return (
        topic,
        " − ".join(letters),
        number(difference.value),
        *(f"[{number(low)}, {number(high)}]" if isfinite(low) else "none" for low, high in ends),
        str(difference.n),
        "paired" if difference.paired else "independent",
        difference.word,
    )


def _pair(comparison: SideBySide, pair: MapDifferences) -> dict[str, object]:
    """Return what the page says of two runs' maps."""
    names = {text["id"]: text["name"] for text in comparison.texts.texts}
    return {
        "names": [comparison.runs[index].name for index in (pair.first, pair.second)],
        "mean": number(pair.mean),
        "n": len(pair.distances),
        "skipped": counts(pair.skipped) or "none",
        "texts": [
            {
                "name": names[text],
                "distance": number(distance),
                "link": f"#text={text}&first={pair.first}&second={pair.second}",
            }
            for text, distance in [*pair.distances.items()][:MOST_DIFFERENT]
        ],
    }
