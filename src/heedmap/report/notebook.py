"""An audit in a notebook: the verdict as a small table, and the whole report in a frame."""

from functools import cached_property
from html import escape

from heedmap.experiments.bottom_line import BottomLine
from heedmap.experiments.findings import AuditResult, Finding, answer_text, level_text
from heedmap.experiments.levels import COLOURS
from heedmap.experiments.rounding import number
from heedmap.nouns import Nouns
from heedmap.report.page import page
from heedmap.report.wording import count_text, interval_text, source_text
from heedmap.terminal.html import escaped, html_table

HEIGHT = 720  # pixels of the frame, which can be dragged; its own window has no height to take a share of


def card_html(audit: AuditResult, line: BottomLine) -> str:
    """Return the bottom line and a row per finding, those for comparison folded; no scripts."""
    judged = [f for f in audit.findings if f.level != "for comparison"]
    compared = [f for f in audit.findings if f.level == "for comparison"]
    folded = (
        f"<details><summary>{len(compared)} for comparison</summary>{_table(compared, audit.nouns)}</details>"
        if compared
        else ""
    )
    tables = escaped(", ".join(audit.tables))
    return (
        f"{line._repr_html_()}{_table(judged, audit.nouns)}{folded}<div>Of this audit: .page() is the "
        "whole report; .figures; .columns; and by name, as in audit[&quot;instances&quot;], the tables "
        f"{tables}.</div>"
    )


def _table(findings: list[Finding], nouns: Nouns) -> str:
    rows = [
        (
            level_text(f),
            f.question,
            f"{number(f.value)} {interval_text(f)}, {count_text(f, nouns)}",
            answer_text(f),
        )
        for f in findings
    ]
    head = ["level", "question", "value and 95 % interval", "answer"]
    return html_table(rows, head, marks=[COLOURS[f.level] for f in findings])


class Page:
    """The report of an audit, which a notebook shows in a frame of its own."""

    def __init__(self, audit: AuditResult) -> None:
        self._audit = audit

    @cached_property
    def html(self) -> str:
        """The report as a self-contained page."""
        return page(self._audit)

    def __repr__(self) -> str:
        return f"<Page: report of {source_text(self._audit.settings.data.source)}, {len(self.html)} characters>"

    def _repr_html_(self) -> str:
        # Without the same origin, no script of the page reaches the notebook. Links to its own parts need a
        # base, or they would lead to the notebook's address; it stands before the policy that forbids others.
        framed = self.html.replace("<head>", '<head><base href="about:srcdoc">', 1)
        return (
            f'<iframe srcdoc="{escape(framed)}" sandbox="allow-scripts" title="report" '
            f'style="box-sizing:border-box;width:100%;height:{HEIGHT}px;border:1px solid #8a8f98;'
            'resize:vertical"></iframe>'
        )
