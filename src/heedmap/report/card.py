"""The verdict card for the terminal."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table

from heedmap.experiments.bottom_line import Answer, bottom_line
from heedmap.experiments.findings import AuditResult, Finding, Level, answer_text, pooled
from heedmap.experiments.notes import note_texts
from heedmap.report.phrases import (
    audited_text,
    caveats,
    classes_text,
    counts,
    interval_text,
    left_out,
    maps_left_out,
    model_text,
    number,
    pairs_text,
    rates_text,
    repeats_text,
    scale_text,
    vectors_text,
    weights_kept,
)
from heedmap.terminal.output import cell

STYLES: dict[Level, str] = {
    "for": "green",
    "mixed": "yellow",
    "against": "red",
    "undecided": "dim",
}
ANSWER_STYLES: dict[Answer, str] = {"yes": "green", "no": "red", "cannot tell": "yellow"}


def card(audit: AuditResult) -> RenderableType:
    """Render every question with its number, interval, n, reading and exclusions.

    Text from the data goes in as a `cell`: brackets in it are never markup.
    """
    blocks: list[RenderableType] = [*_bottom_line(audit), _header(pooled(audit))]
    for finding in audit.findings:
        blocks += [Rule(style="dim"), *_block(finding)]
    return Panel(
        Group(*blocks),
        title=cell("Should you heed the heat map?", style="bold"),
        subtitle=cell("[ ] 95 % interval over texts, of this one model", style="dim"),
        padding=(0, 1),
    )


def _bottom_line(audit: AuditResult) -> list[RenderableType]:
    if audit.rates is None:
        return []
    line = bottom_line(audit.findings, audit.rates, audit.settings.model)
    return [
        cell(line.sentence, style=f"bold {ANSWER_STYLES[line.answer]}"),
        Padding(cell(f"How sure: {line.rates}." if line.rates else ""), (0, 0, 0, 2)),
        Padding(cell(f"Not tested: {'; '.join(line.not_tested)}.", style="dim"), (0, 0, 0, 2)),
        Rule(style="dim"),
    ]


def _header(audit: AuditResult) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    rows = {
        "run": str(audit.about.get("name", "")),
        "data": audit.settings.data.source,
        "classes": classes_text(audit),
        **({"texts": pairs} if (pairs := pairs_text(audit)) else {}),
        "model": model_text(audit),
        "audited": audited_text(audit),
    }
    if repeats := repeats_text(audit):
        rows["repeated"] = repeats
    if vectors := vectors_text(audit):
        rows["vectors"] = vectors
    if maps := maps_left_out(audit):
        rows["no maps of"] = maps
    if kept := weights_kept(audit, short=True):
        rows["adversary"] = f"weights {kept}"
    if reasons := left_out(audit):
        rows["left out"] = counts(reasons)
    notes = [("note", note) for note in note_texts(audit.about)]
    for name, value in (*rows.items(), *notes):
        grid.add_row(cell(name, style="dim"), cell(value))
    return grid


def _block(finding: Finding) -> list[RenderableType]:
    answer = Table.grid(padding=(0, 2))
    # Fixed widths, so that the answers are aligned.
    answer.add_column(width=6)
    answer.add_column(width=15)
    answer.add_column(width=9)
    answer.add_column(overflow="fold")
    style = STYLES[finding.level]
    answer.add_row(
        cell(number(finding.value), style="bold"),
        cell(interval_text(finding)),
        cell(f"n = {finding.n}"),
        cell(f"● {answer_text(finding)}", style=style),
    )
    lines: list[RenderableType] = [
        cell(finding.question, style="bold"),
        Padding(answer, (0, 0, 0, 2)),
        Padding(cell(f"{finding.measure}: {finding.meaning}"), (0, 0, 0, 2)),
    ]
    if scale := scale_text(finding):
        lines.append(Padding(cell(scale), (0, 0, 0, 2)))
    if finding.relative is not None:
        lines.append(Padding(cell(rates_text(finding), style="dim"), (0, 0, 0, 2)))
    asides = caveats(finding)
    if finding.left_out:
        asides.append(f"left out: {counts(finding.left_out)}")
    return [*lines, *(Padding(cell(text, style="italic"), (0, 0, 0, 2)) for text in asides)]
