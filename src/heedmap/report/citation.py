"""The bottom line to take along: as text, Markdown and LaTeX, with what it rests on."""

from importlib.metadata import version

from heedmap.experiments.bottom_line import BottomLine
from heedmap.experiments.findings import AuditResult, level_text
from heedmap.report.anonymous import is_anonymous
from heedmap.report.wording import (
    audited_text,
    count_text,
    model_text,
    overview_number,
    source_text,
)
from heedmap.terminal.escapes import latex_text, markdown_text
from heedmap.terminal.output import printable


def citations(audit: AuditResult, line: BottomLine, tables_hash: str) -> dict[str, str]:
    """Return the bottom line in the forms that the page offers to copy, by their names.

    Each has the numbers with their intervals and n, how often the rule errs, what was audited, heedmap's
    version and the hash of the tables. `audit`: with one row per text.
    """
    rests_on = [
        *line.details,
        *(
            f"{finding.question} {level_text(finding)}: {overview_number(finding)}, "
            f"{count_text(finding, audit.nouns)}"
            for finding in audit.findings
            if finding.level != "for comparison"
        ),
    ]
    about = (
        f"Data: {source_text(audit.settings.data.source)}. Model: {model_text(audit)}. "
        f"Audited: {audited_text(audit)}. heedmap {version('heedmap')}, sha256 of the tables"
        f"{' without their texts' if is_anonymous(audit) else ''} {tables_hash}."
    )
    return {
        "text": "".join(f"{printable(part)}\n" for part in (line.sentence, *rests_on, about)),
        "Markdown": _markdown(line.sentence, rests_on, about),
        "LaTeX": _latex(line.sentence, rests_on, about),
    }


def _markdown(sentence: str, rests_on: list[str], about: str) -> str:
    items = "".join(f"* {markdown_text(part)}\n" for part in rests_on)
    return f"> {markdown_text(sentence)}\n\n{items}\n{markdown_text(about)}\n"


def _latex(sentence: str, rests_on: list[str], about: str) -> str:
    items = "".join(f"\\item {latex_text(part)}\n" for part in rests_on)
    whole = f"\\begin{{quote}}\n{latex_text(sentence)}\n\\end{{quote}}\n"
    if items:
        whole += f"\\begin{{itemize}}\n{items}\\end{{itemize}}\n"
    return f"{whole}{latex_text(about)}\n"
