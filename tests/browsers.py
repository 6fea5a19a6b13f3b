"""Pages of every kind as files, with hostile texts and names, and Chromium to open them."""

import os
import shutil
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

import pandas as pd
import pytest
from made_audits import EVIL, make_audit

import heedmap as hm
from heedmap.comparisons.compare import compare
from heedmap.experiments.rates import packaged_rates
from heedmap.report.card_content import card_content
from heedmap.report.card_files import svg
from heedmap.report.page import page as report
from heedmap.report.page import pages as report_and_others

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
HOSTILE = [
    *EVIL, '"><img src=x onerror="alert(3)">', "' onclick='alert(4)", "שלום", "\u202etrap", "👩‍👩‍👧",
    "x" * 400, "&amp;", "`${1}`",
    "__proto__",
]  # fmt: skip
HOSTILE_NAMES = (
    "data/<img src=x onerror=alert(6)>.csv", "</script><script>alert(7)</script>", "\"' onfocus='alert(8)",
    "<svg onload=alert(9)>",
)  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as started:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@contextmanager
def opening(chromium, *schemes, **how):
    """Give a function that opens a file at an address; at the end nothing may have been wrong with any page.

    Wrong are errors, dialogs, and requests other than for these files and of these schemes. `how` is of the
    browser's context, such as `has_touch`.
    """
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
    context.set_default_timeout(60_000)
    wrong, allowed = [], [*schemes]

    def open_at(path, address=""):
        allowed.append(f"file://{path}")
        page = context.new_page()
        page.on("request", lambda request: wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.goto(f"file://{path}{address}", wait_until="commit")
        page.locator(".table .body .line").first.wait_for()
        return page

    yield open_at
    context.close()
    assert [x for x in wrong if not x.startswith(tuple(allowed))] == []


def until(page, expression, arg=None):
    """Wait until an expression holds. Playwright's own way evaluates text, which the page's policy forbids."""
    for _ in range(600):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never: {expression}")


def names(page):
    return page.locator(".table .body .line .of-name").all_inner_texts()


def count(page):
    return page.locator(".count").inner_text()


def address(page):
    return page.evaluate("location.hash")


def rows_of(audit):
    return audit.tables["instances"].to_pylist()


def hostile_audit(n=30, name="own"):
    """Audit texts whose words, keys, classes, file, columns and name would do harm if read as HTML."""
    audit = make_audit(n=n)
    instances = audit.tables["instances"]
    tokens = [[HOSTILE[(i + t) % len(HOSTILE)] for t in range(len(words))]
              for i, words in enumerate(instances["tokens"].to_pylist())]  # fmt: skip
    keys = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)]
    for column, values in {"tokens": tokens, "key": keys}.items():
        place = instances.column_names.index(column)
        instances = instances.set_column(place, column, [values])
    about = {**audit.about, "name": f"{audit.about['name']} {name}"}
    tables = {**audit.tables, "instances": instances}
    columns = dict(zip(("source", "text", "label", "id"), HOSTILE_NAMES, strict=True))
    data = audit.settings.data.model_copy(update=columns)
    settings = audit.settings.model_copy(update={"data": data})
    return replace(audit, settings=settings, tables=tables, about=about, rates=packaged_rates())


def all_pages(folder):
    """Write a page of each kind into a folder whose name is hostile too; return their paths by kind."""
    import torch
    from made_results import result
    from tiny_transformers import tiny_classifier

    from heedmap.papers.kit.render import page as reproduction
    from heedmap.report import pictures, shown_interventions
    from heedmap.settings.audit import AuditSettings

    folder = folder / "a 'b\" <img src=x onerror=alert(5)>"
    folder.mkdir()
    paths = {}

    def write(kind, content, ending="html"):
        paths[kind] = folder / f"{kind}.{ending}"
        paths[kind].write_text(content, "utf-8")

    audit = hostile_audit()
    write("report", report(audit))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("page", "text_data"):
            patch.setattr(f"heedmap.report.{module}.MOST", 20)
        _, (_, others) = report_and_others(audit, "report.html")
    write("texts", others)
    paths["comparison"] = compare([audit, hostile_audit(name="other")]).save(
        folder / "comparison.html"
    )
    words = ["good", "bad", "film", *EVIL]
    frame = pd.DataFrame(
        {
            "text": [f"{words[i % 2]} {words[2 + i % 6]} film {i}" for i in range(80)],
            "label": [("<b>good", "bad")[i % 2] for i in range(80)],
        }
    )
    run = hm.train(hm.load(frame), encoder="average", epochs=1, progress=False)
    paths["explanation"] = run.explain(" ".join(EVIL)).save(folder / "explanation.html")
    with pytest.MonkeyPatch.context() as patch:
        quick = AuditSettings(search_steps=4, search_restarts=1)
        patch.setattr(shown_interventions, "AuditSettings", lambda: quick)
        torch.manual_seed(0)
        drawn = pictures.draw(tiny_classifier(), f"A great film {EVIL[0]} {HOSTILE[5]}.")
    write("picture", pictures.page(drawn))
    write("reproduction", reproduction(result()))
    write("card", svg(card_content(audit)), "svg")
    return paths


@lru_cache(maxsize=2)
def real_audit(classes):
    """Audit a model of 800 texts of about 20 words (2 classes), or of 400 made ones of 5 classes."""
    if classes == 2:
        corpus = hm.load("reviews")
    else:
        cues = ["awful", "bad", "middling", "good", "great"]
        filler = [f"w{i}" for i in range(40)]
        frame = pd.DataFrame(
            {
                "text": [
                    " ".join([*(filler[(7 * i + 3 * t) % 40] for t in range(18)), cues[i % 5]])
                    for i in range(2000)
                ],
                "label": [cues[i % 5] for i in range(2000)],
            }
        )
        corpus = hm.load(frame)
    run = hm.train(corpus, encoder="average", epochs=3, progress=False)
    return hm.audit(run, progress=False)
