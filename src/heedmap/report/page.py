"""The report: one self-contained HTML file, a pure function of the audit's tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.budget_facts import budget_of
from heedmap.experiments.findings import AuditResult, pooled
from heedmap.experiments.levels import SIGNS
from heedmap.experiments.methods.adversary_weights import FILE
from heedmap.experiments.needs import not_asked_text
from heedmap.experiments.notes import drift_text, note_texts
from heedmap.experiments.questions.adversary import is_exact, is_searched
from heedmap.experiments.rates import packaged_rates
from heedmap.files.content_hash import tables_hash
from heedmap.report.advice import next_steps, rests_on
from heedmap.report.anonymous import is_anonymous
from heedmap.report.beside import PageBeside, pages_beside
from heedmap.report.citation import citations
from heedmap.report.drawn_texts import with_drawn_texts
from heedmap.report.examples import Example, choose_examples, reworded
from heedmap.report.figures import figures
from heedmap.report.heatmaps import instance
from heedmap.report.inline_styles import InlineStyles
from heedmap.report.linked_rows import link, shown_rows
from heedmap.report.scripts import bundle, own_script, safe_json
from heedmap.report.templates import environment
from heedmap.report.text_data import MOST, PackedTexts, packed_pages
from heedmap.report.texts_page import texts_page
from heedmap.report.verdict import verdicts
from heedmap.report.what_if_data import reason
from heedmap.report.wording import (
    audited_text,
    columns_text,
    derived,
    distinct_texts,
    few_texts,
    left_out,
    maps_left_out,
    model_text,
    outputs_text,
    pairs_text,
    place_name,
    plural,
    query_name,
    repeats_text,
    settings_text,
    source_text,
    tolerance,
    variant_text,
    vectors_text,
    weights_kept,
)
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import ModelSettings, TransformerSettings


def page(audit: AuditResult) -> str:
    """Render the report. The same audit gives the same bytes; all text from the data is escaped."""
    return next(pages(audit))[1]


def pages(audit: AuditResult, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the report, then the pages beside it of the texts that it has no room for: names and contents.

    `name`: that of the report's file, by which the others are named; without it there are none.
    """
    drawn = with_drawn_texts(audit)
    examples = [
        reworded(example, audit.nouns, audit.classes)
        for example in choose_examples(drawn.tables, audit.classes, derived(audit))
    ]
    packed = packed_pages(drawn.tables, audit.classes, examples, audit.nouns.reword(reason(drawn)))
    texts = next(packed)
    others = pages_beside(texts.total - len(texts.rows), MOST, name)
    total = audit.tables["instances"].num_rows
    yield name, _report(audit, drawn, examples, replace(texts, total=total), others)
    for beside in others:
        yield beside.name, texts_page(audit, next(packed), beside, name)


def _report(
    audit: AuditResult,
    drawn: AuditResult,
    examples: Sequence[Example],
    texts: PackedTexts,
    others: Sequence[PageBeside],
) -> str:
    whole = pooled(audit)
    adversary = audit.tables.get("adversary")  # optional, unlike the instances
    columns = [] if adversary is None else adversary.column_names
    few_drawn, rates = drawn is not audit, audit.rates or packaged_rates()
    drawn_figures = figures(pooled(drawn) if few_drawn else whole)
    line = None if audit.rates is None else bottom_line(audit, rates)
    places = shown_rows(drawn.tables["instances"], texts.rows)
    return (
        environment(audit.nouns)
        .get_template("page.html")
        .render(
            name=str(audit.about.get("name", "")),
            scripts=[bundle(), own_script("report.js")],
            styled=InlineStyles(),
            facts=_facts(whole),
            training=_training(audit),
            left_out=left_out(audit),
            verdicts=verdicts(whole),
            signs=SIGNS,
            few=few_texts(distinct_texts(whole), audit.nouns),
            line=line,
            said=None if line is None else replace(line, instead="").sentence,
            rests_on=[]
            if line is None
            else rests_on(audit, line, rates, [f.key for f in drawn_figures]),
            next_steps=[] if line is None else next_steps(audit, line, rates),
            citations=None if line is None else citations(whole, line, tables_hash(audit.tables)),
            figures=[(figure, safe_json(link(figure.spec, places))) for figure in drawn_figures],
            instances=[]
            if is_anonymous(audit)
            else [instance(drawn.tables, audit.classes, example) for example in examples],
            anonymous=is_anonymous(audit),
            texts=texts,
            others=others,
            few_drawn=few_drawn,
            n=whole.tables["instances"].num_rows,
            windows="windows" in audit.about,
            classes=len(audit.classes),
            query=query_name(audit),
            both="second" in whole.tables["instances"].column_names,
            transformer=isinstance(audit.settings.model, TransformerSettings),
            adversary=adversary is not None,
            searched=adversary is not None and is_searched(columns),
            exact=is_exact(columns, len(audit.classes)),
            derived=derived(audit),
            path=(audit.settings.audit or AuditSettings()).gradient_path,
            tolerance=tolerance(audit),
            settings=settings_text(audit.settings),
        )
    )


def _facts(audit: AuditResult) -> list[tuple[str, str]]:
    settings = audit.settings
    facts = [
        ("data", source_text(settings.data.source)),
        *([("columns", columns)] if (columns := columns_text(audit)) else []),
        outputs_text(audit),
    ]
    if pairs := pairs_text(audit):
        facts.append(("texts", pairs))
    facts.append(("model", model_text(audit)))
    facts += [("variant", text) for text in [variant_text(settings)] if text]
    if isinstance(settings.model, TransformerSettings):
        facts += [
            (name.replace("_", " "), _grouped(audit.about[name]))
            for name in ("adapter", "acted_on", "layers", "heads", "parameters")
            if name in audit.about
        ]
        if drift := drift_text(audit.about):
            facts.append(("default attention", drift))
        if maps := maps_left_out(audit):
            facts.append(("no maps of", maps))
        if weights := weights_kept(audit):
            facts.append(("adversary's weights", f"{weights}, tables/{FILE}"))
        facts.append(
            ("weights", f"{place_name(settings.model.source)}, sha256 {settings.model.weights}")
        )
    elif isinstance(settings.model, ModelSettings):
        sizes = f"embedding {settings.model.embedding_size}, hidden {settings.model.hidden_size}"
        facts.append(("size", sizes))
    query = query_name(audit)
    if query and not isinstance(settings.model, TransformerSettings):
        searched = "not linear in the weights, so the most different ones are searched for"
        facts.append(("read-out", f"a tanh of text and {query}: {searched}"))
    if settings.train is not None:
        planned, done = settings.train.epochs, len(audit.about.get("training") or ())
        epochs = plural(planned, "epoch")
        if done and done < planned:
            epochs = f"ended after {done} of {epochs}, at a perfect dev score"
        facts.append(("training", f"{epochs}, seed {settings.train.seed}"))
    facts.append(("audited", audited_text(audit)))
    budget = budget_of(audit)
    facts += (
        []
        if budget is None or not budget.more_time
        else [("more time", audit.nouns.reword(budget.more_time))]
    )
    if repeats := repeats_text(audit):
        facts.append(("repeated", repeats))
    if vectors := vectors_text(audit):
        facts.append(("word vectors", vectors))
    unasked = audit.nouns.reword(not_asked_text(audit.about))
    facts += [("not asked", text) for text in [unasked] if text]
    facts += [("note", note) for note in note_texts(audit.about)]
    unknown = audit.about.get("unknown_share")
    if isinstance(unknown, int | float):
        also = f", each {query} included" if query else ""
        facts.append(("unknown words", f"{unknown:z.1%} of the words in the test texts{also}"))
    return facts


def _grouped(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _training(audit: AuditResult) -> dict[str, Any]:
    """Return the scores on the development split by epoch, and the best epoch."""
    scores = audit.about.get("training")
    if not isinstance(scores, Sequence) or not scores:
        return {"names": [], "rows": [], "best": None}
    rows = [row for row in scores if isinstance(row, Mapping)]
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    cells = [[row.get(name) for name in names] for row in rows]
    return {
        "names": [name.replace("_", " ") for name in names],
        "rows": [["–" if x is None else f"{x:z.3f}" for x in row] for row in cells],
        "best": audit.about.get("best_epoch"),
    }
