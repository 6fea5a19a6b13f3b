"""An explanation in words, in the terminal, in a notebook and as a page. All text is escaped."""

import math

import numpy as np
from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from heedmap.experiments.adversary import NOT_ASKED
from heedmap.experiments.alternatives import READ_OUTS, signed_map
from heedmap.experiments.flip_sets import EXACT
from heedmap.experiments.flips import RANKINGS
from heedmap.experiments.registry import HeatMap
from heedmap.experiments.rounding import number
from heedmap.measures import LN2
from heedmap.report.explanation import Explanation, Floats, Window
from heedmap.report.heatmaps import Row, shaded
from heedmap.report.page import environment
from heedmap.report.phrases import plural
from heedmap.report.scripts import policy
from heedmap.terminal.output import Either, cell

LISTED = 40  # rows of the table
NAMED = 8  # words, and classes, of a sentence
BAR = 6  # characters
TABLE = 80  # columns of the table: less, and each number is on a line of its own
COUNTS = {1: "", 2: "two ", 3: "three "}
LEAVE_ONE_OUT = "leave-one-out"


def sentences(explanation: Explanation, window: Window) -> list[str]:
    """Say what the numbers of a window come to, without a verdict: one text allows none."""
    if len(window.tokens) == 1:
        return [f"One {explanation.unit}: nothing to leave out, and no other weights."]
    return [
        _attended(window, explanation.unit),
        _other_weights(window, explanation.epsilon),
        _flipping(explanation, window),
    ]


def _attended(window: Window, unit: str) -> str:
    most, total = window.most_attended(), window.leave_one_out.sum()
    if not most:
        return f"No {unit} is attended to more than the others."
    count, size = len(most), len(window.tokens)
    words = f"{unit} holds" if count == 1 else f"{unit}s hold"
    held = number(window.attention[most].sum())
    hold = f"The {COUNTS[count]}most attended {words} {held} of the attention"
    if not total > 0:
        return (
            f"{hold}; no importance by leave-one-out: the answer stays the same without any {unit}."
        )
    found = window.leave_one_out[most].sum() / total
    best = np.sort(window.leave_one_out)[-count:].sum() / total
    return (
        f"{hold} and {number(found)} of the importance by leave-one-out: as many at random would hold "
        f"{number(count / size)}, the best {number(best)}. Under the whole map lies "
        f"{number(window.found)} of it: under an even one {number(1 / size)}, these weights at best "
        f"{number(window.largest)}."
    )


def _other_weights(window: Window, epsilon: float) -> str:
    found = window.adversary
    if found is None:
        return f"Other weights, same answer: {NOT_ASKED}."
    most = "of all" if found.exact else "that were found"
    bound = "" if found.exact else f", and none lie beyond {number(found.jsd_upper)}"
    return (
        f"Other weights, same answer (within {epsilon:g}): the most different ones {most} lie at JSD "
        f"{number(found.jsd)} from the model's{bound}; {number(LN2)} is nothing in common."
    )


def _flipping(explanation: Explanation, window: Window) -> str:
    flip, unit = window.flip, explanation.unit
    if flip is None and window.smallest:
        return (
            f"No {unit}s flip the answer when their weight is erased, while one is left: a proof."
        )
    if flip is None:
        orders = "; ".join(RANKINGS.values())
        return f"The answer stays when weights are erased in any of these orders: {orders}."
    words = [f"{window.tokens[place]} ({place + 1})" for place in flip.words[:NAMED]]
    more = len(flip.words) - len(words)
    named = ", ".join(words) + (f" and {more} more" if more else "")
    how = (
        "no fewer do"
        if flip.ranking == EXACT
        else f"the first in the order of {RANKINGS[flip.ranking]}, which needs the fewest of those tried"
    )
    along = window.flip_along_map
    along_map = f"it takes {along}" if along else "it never flips"
    return (
        f"Erasing the weight of {plural(len(flip.words), unit)} flips the answer to "
        f"{explanation.classes[flip.predicted]} ({share(flip.probability)}): {named}; {how}. "
        f"In the map's order {along_map}."
    )


def share(probability: float) -> str:
    """Format a probability with three decimals; only 1 and 0 are shown as certain.

    >>> share(0.9512), share(0.99999), share(1.0)
    ('0.951', '>0.999', '1.000')
    """
    if 0.9995 <= probability < 1:
        return ">0.999"
    return "<0.001" if 0 < probability < 0.0005 else f"{probability:z.3f}"


def likeliest(explanation: Explanation) -> list[tuple[str, str]]:
    """Return the likeliest classes with their probabilities, and how many more there are."""
    order = np.argsort(-explanation.probabilities, kind="stable")
    named = [(explanation.classes[i], share(explanation.probabilities[i])) for i in order[:NAMED]]
    return [*named, *([("…", f"{len(order) - NAMED} more classes")] if len(order) > NAMED else [])]


def terminal(explanation: Explanation) -> RenderableType:
    """Render it for the terminal; bars, brackets and signs say what the colours say."""
    answer, *others = likeliest(explanation)
    parts: list[RenderableType] = [
        cell(f"{explanation.name}: {explanation.model}", style="dim"),
        Text.assemble(
            "predicted ",
            cell(f"{answer[0]} {answer[1]}", style="bold"),
            *(cell(f", {name} {value}") for name, value in others),
        ),
    ]
    if explanation.query is not None:
        parts.append(Text.assemble(("query     ", "dim"), cell(" ".join(explanation.query))))
    parts += [cell(f"note: {note}", style="yellow") for note in explanation.notes]
    for place, window in enumerate(explanation.windows, 1):
        if len(explanation.windows) > 1:
            best = int(window.probabilities.argmax())
            parts.append(
                cell(
                    f"Window {place} of {len(explanation.windows)}: {explanation.classes[best]} "
                    f"{share(window.probabilities[best])}",
                    style="bold",
                )
            )
        parts += ["", _marked(window), "", _table(explanation, window), ""]
        parts += [cell(f"● {line}") for line in sentences(explanation, window)]
    return Group(*parts)


def _marked(window: Window) -> Text:
    most = set(window.most_attended())
    words = [
        cell(f"[{token}]", style="bold yellow") if place in most else cell(token)
        for place, token in enumerate(window.tokens)
    ]
    return Text(" ").join(words)


def _table(explanation: Explanation, window: Window) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 1), caption_justify="left")
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column(explanation.unit, no_wrap=True, overflow="ellipsis", max_width=14)
    columns: list[tuple[str, Floats, float, str]] = []
    other = None if window.adversary is None else window.adversary.weights
    top = max(window.attention.max(), 0.0 if other is None else other.max())
    signed = np.where(window.signed < 0, -window.leave_one_out, window.leave_one_out)
    columns.append(("attention", window.attention, top, "yellow"))
    columns.append(("gradient", window.gradient, float(window.gradient.max()), "cyan"))
    columns.append((LEAVE_ONE_OUT, signed, float(np.abs(signed).max()), "cyan"))
    if other is not None:
        columns.append(("other weights", other, top, "yellow"))
    for name, _, _, style in columns:
        table.add_column(name, style=style, no_wrap=True)
    narrow = Table.grid("", Column(overflow="fold"), Column(no_wrap=True), padding=(0, 2))
    shown = _most_telling([values for _, values, _, _ in columns])
    for place in shown:
        token = cell(f"{window.tokens[place]}{'?' if window.unknown[place] else ''}")
        bars = [_bar(float(values[place]), most) for _, values, most, _ in columns]
        table.add_row(str(place + 1), token, *bars)
        narrow.add_row(cell(str(place + 1), style="dim"), token)
        for (name, _, _, style), bar in zip(columns, bars, strict=True):
            narrow.add_row("", name, bar, style=style)
    unit = explanation.unit
    keys = [f"negative: the answer is likelier without the {unit}"] if (signed < 0).any() else []
    keys += ["?: holds an unknown word" if unit == "sentence" else "?: unknown word"] * bool(
        window.unknown.any()
    )
    if len(shown) < len(window.tokens):
        keys.append(
            f"{len(window.tokens) - len(shown)} {unit}s that stand out in no column are not listed"
        )
    return Group(Either(table, narrow, TABLE), *(cell(key, style="dim") for key in keys))


def _most_telling(columns: list[Floats]) -> list[int]:
    """Return the places of the tokens to list: all, or those that come first in a column, in order."""
    ranks = [
        np.argsort(np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")) for values in columns
    ]
    best = np.min(ranks, axis=0)
    return sorted(int(place) for place in np.argsort(best, kind="stable")[:LISTED])


def _bar(value: float, most: float) -> Text:
    if not math.isfinite(value):
        return Text(f"{number(value):>6}")
    length = round(BAR * abs(value) / most) if most > 0 else 0
    bar = Text(f"{number(value):>6} {('░' if value < 0 else '█') * length:<{BAR}}")
    if value < 0:
        bar.stylize("red")
    return bar


def fragment(explanation: Explanation) -> str:
    """Render it for a notebook: styles are in the elements, and nothing is fetched."""
    return (
        environment()
        .get_template("explanation.html")
        .render(
            explanation=explanation,
            classes=likeliest(explanation),
            windows=[
                (
                    window,
                    share(float(window.probabilities.max())),
                    _rows(window),
                    sentences(explanation, window),
                )
                for window in explanation.windows
            ],
        )
    )


def page(explanation: Explanation) -> str:
    """Render it as a self-contained page without scripts."""
    return (
        environment()
        .get_template("explanation_page.html")
        .render(
            name=explanation.name,
            body=Markup(fragment(explanation)),
            policy=policy(),
        )
    )


def _rows(window: Window) -> list[Row]:
    """Return the heat maps as shaded words; in the model's own, those of the set that flips are marked."""
    maps = [
        HeatMap("attention, on trial", "attention", window.attention.tolist()),
        HeatMap("gradient", "importance", window.gradient.tolist()),
        HeatMap(
            LEAVE_ONE_OUT,
            "importance",
            window.leave_one_out.tolist(),
            against=(window.signed < 0).tolist(),
        ),
        signed_map(READ_OUTS["read_out"], window.read_out),
        signed_map(READ_OUTS["read_out_attention"], window.read_out_attention),
    ]
    if window.adversary is not None:
        maps.append(
            HeatMap("other weights, same answer", "attention", window.adversary.weights.tolist())
        )
    erased = set(window.flip.words if window.flip else [])
    marks = [place in erased for place in range(len(window.tokens))]
    return [shaded(one, window.tokens, None if i else marks) for i, one in enumerate(maps)]
