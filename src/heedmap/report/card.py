"""The verdict card for the terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table

from heedmap.experiments.bottom_line import bottom_line, not_tested_in
from heedmap.experiments.budget_facts import budget_of
from heedmap.experiments.findings import AuditResult, Finding, answer_text, level_text, pooled
from heedmap.experiments.levels import SIGNS, Level
from heedmap.experiments.needs import not_asked_text
from heedmap.experiments.notes import note_texts
from heedmap.experiments.rounding import number
from heedmap.nouns import Nouns
from heedmap.report.wording import (
    audited_text,
    caveat,
    classes_beside,
    columns_text,
    count_text,
    counts,
    distinct_texts,
    few_texts,
    interval_text,
    left_out,
    maps_left_out,
    model_text,
    outputs_text,
    overview_number,
    pairs_text,
    plural,
    repeats_text,
    scale_text,
    source_text,
    variant_text,
    vectors_text,
    weights_kept,
)
from heedmap.terminal.output import Either, cell

INTERVALS = "[ ] 95 % interval over texts, of this one model"
OVERVIEW = 52  # columns that a level, a question and its number need beside each other

STYLES: dict[Level, str] = {
    "for": "green",
    "mixed": "yellow",
    "against": "red",
    "cannot tell": "",
    "for comparison": "dim",
}


def card(audit: AuditResult) -> RenderableType:
    """Render the whole card: the head, then each question with its number, interval, n and exclusions.

    Text from the data goes in as a `cell`: brackets in it are never markup.
    """
    texts = distinct_texts(pooled(audit))
    blocks = _head(audit, texts, "below")
    for finding in audit.findings:
        blocks += [Rule(style="dim"), *_block(finding, texts, audit.nouns)]
    return _panel(blocks, audit.nouns)


def card_head(audit: AuditResult) -> RenderableType:
    """Render the head of the card: the answer, the questions that have a level, and what was audited."""
    return _panel(_head(audit, distinct_texts(pooled(audit)), "in the report"), audit.nouns)


def _panel(blocks: Sequence[RenderableType], nouns: Nouns) -> RenderableType:
    return Panel(
        Group(*blocks),
        title=cell("Should you heed the heat map?", style="bold"),
        subtitle=cell(nouns.reword(INTERVALS), style="dim"),
        padding=(0, 1),
    )


def _head(audit: AuditResult, texts: int, elsewhere: str) -> list[RenderableType]:
    """Render the head. `texts`: the different texts; `elsewhere`: where all questions are answered."""
    return [
        *_bottom_line(audit, texts),
        *_overview(audit.findings, elsewhere),
        Rule(style="dim"),
        _header(audit),
    ]


def _bottom_line(audit: AuditResult, texts: int) -> list[RenderableType]:
    lines: list[RenderableType] = []
    if audit.rates is not None:
        line = bottom_line(audit, audit.rates)
        sentence = f"{SIGNS[line.level]} {line.sentence}"
        lines.append(cell(sentence, style=f"bold {STYLES[line.level]}"))
        lines += map(_indented, line.details)
    if caution := few_texts(texts, audit.nouns):
        lines.append(_indented(f"Caution: {caution}."))
    return [*lines, Rule(style="dim")] if lines else []


def _overview(findings: Sequence[Finding], elsewhere: str) -> list[RenderableType]:
    """List the questions that have a level, one per line, and count the others."""
    judged = [finding for finding in findings if finding.level != "for comparison"]
    wide = Table.grid(padding=(0, 2))
    wide.add_column(no_wrap=True)
    wide.add_column(overflow="fold", ratio=1)
    wide.add_column(no_wrap=True)
    narrow: list[RenderableType] = []
    for finding in judged:
        topic, value = finding.topic or finding.question, overview_number(finding)
        level = cell(level_text(finding), style=STYLES[finding.level])
        wide.add_row(level, cell(topic), cell(value))
        narrow += [level, _indented(topic), _indented(value)]
    lines: list[RenderableType] = [Either(wide, Group(*narrow), OVERVIEW)] if judged else []
    if compared := len(findings) - len(judged):
        text = (
            f"{SIGNS['for comparison']} {plural(compared, 'question')} for comparison: {elsewhere}"
        )
        lines.append(cell(text, style="dim"))
    return lines


def facts(audit: AuditResult) -> list[tuple[str, str]]:
    """Return what was audited: a name and a text per fact."""
    audit = pooled(audit)
    rows = {
        "run": str(audit.about.get("name", "")),
        "data": source_text(audit.settings.data.source),
        **({"columns": columns} if (columns := columns_text(audit)) else {}),
        **dict([outputs_text(audit)]),
        **({"texts": pairs} if (pairs := pairs_text(audit)) else {}),
        "model": model_text(audit),
        **({"variant": variant} if (variant := variant_text(audit.settings)) else {}),
        "audited": audited_text(audit),
    }
    if (budget := budget_of(audit)) is not None and budget.more_time:
        rows["more time"] = audit.nouns.reword(budget.more_time)
    if repeats := repeats_text(audit):
        rows["repeated"] = repeats
    if vectors := vectors_text(audit):
        rows["vectors"] = vectors
    if maps := maps_left_out(audit):
        rows["no maps of"] = maps
    if weights := weights_kept(audit, short=True):
        rows["adversary"] = f"weights {weights}"
    rows |= left_out(audit)
    if unasked := not_asked_text(audit.about):
        rows["not asked"] = audit.nouns.reword(unasked)
    if audit.rates is not None:
        rows["not tested"] = audit.nouns.reword("; ".join(not_tested_in(audit)))
    return [*rows.items(), *(("note", note) for note in note_texts(audit.about))]


def _header(audit: AuditResult) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts(audit):
        grid.add_row(cell(name, style="dim"), cell(value))
    return grid


def _block(finding: Finding, texts: int, nouns: Nouns) -> list[RenderableType]:
    """Render the answer, then the numbers, then how they are measured. `texts`: how many were audited."""
    answer = f": {text}" if (text := answer_text(finding)) else ""
    scale = f". {reached}" if (reached := scale_text(finding, nouns)) else ""
    interval = interval_text(finding)
    lines: list[RenderableType] = [
        cell(finding.question, style="bold"),
        _indented(f"{level_text(finding)}{answer}", style=STYLES[finding.level]),
        _indented(f"{number(finding.value)} {interval}, {count_text(finding, nouns)}{scale}"),
        _indented(f"{finding.measure}: {finding.meaning}"),
    ]
    if of_classes := classes_beside(finding, nouns):
        lines.append(_indented(of_classes))
    aside = caveat(finding, texts, nouns)
    asides = [aside] if aside else []
    if finding.left_out:
        asides.append(f"left out: {counts(finding.left_out)}")
    return [*lines, *(_indented(text, style="italic") for text in asides)]


def _indented(text: str, style: str = "") -> RenderableType:
    return Padding(cell(text, style=style), (0, 0, 0, 2))
