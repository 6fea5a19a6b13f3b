"""Pages beside the report, of the texts that it has no room for: the same table, without the questions."""

from urllib.parse import quote

from heedmap.experiments.findings import AuditResult
from heedmap.report.anonymous import is_anonymous
from heedmap.report.beside import PageBeside
from heedmap.report.inline_styles import InlineStyles
from heedmap.report.scripts import own_script
from heedmap.report.templates import environment
from heedmap.report.text_data import PackedTexts


def texts_page(audit: AuditResult, texts: PackedTexts, beside: PageBeside, report: str) -> str:
    """Render one of the pages. `report`: the name of the report's file, in the folder above."""
    return (
        environment(audit.nouns)
        .get_template("texts.html")
        .render(
            name=str(audit.about.get("name", "")),
            scripts=[own_script("report.js")],
            styled=InlineStyles(),
            anonymous=is_anonymous(audit),
            texts=texts,
            beside=beside,
            report=f"../{quote(report)}",
        )
    )
