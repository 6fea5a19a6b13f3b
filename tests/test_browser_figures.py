"""The report's figures in Chromium: their marks are texts, which are named, opened, brushed and saved."""

import csv
import io
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from browsers import HOSTILE, address, count, names, opening, rows_of, until
from browsers import chromium as chromium  # noqa: PLC0414  # the fixture
from made_audits import make_audit

from heedmap.report.anonymous import without_texts
from heedmap.report.page import page as report

pytestmark = pytest.mark.browser
FIGURE = "#figure-entropy"
BARS = "#figure-tau-gradient"
FIRST, LAST = 0.2, 0.6  # entropies of the brush in the tests


@pytest.fixture(scope="module")
def audit():
    return make_audit(n=300, classes=3)


@pytest.fixture(scope="module")
def file(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("figures") / "report.html"
    path.write_text(report(audit), "utf-8")
    return path


@pytest.fixture
def opened(chromium, file):
    """Open a report at an address, and wait for its figures."""
    with opening(chromium, "blob:") as open_at:
        yield lambda place="", path=file: with_figures(open_at(path, place))


def with_figures(page):
    """Wait until a page has drawn its figures."""
    until(page, "[...document.querySelectorAll('.chart')].every(c => c.querySelector('svg'))")
    until(page, "document.querySelectorAll('.of-texts').length > 0")
    return page


def inside(audit):
    """The rows of the texts of two words or more whose entropy is in the brush."""
    return [r for r in rows_of(audit) if r["n_tokens"] >= 2 and FIRST <= r["entropy"] <= LAST]


def brushed():
    return f"#brush=entropy%3A0.5%2C50%2C{FIRST}%2C{LAST}"


def marks(page, figure, row=None):
    """The drawn marks of a figure that have more texts than none, or those that have this one alone."""
    return page.evaluate_handle(
        """([figure, row]) => [...document.querySelectorAll(`${figure} .of-texts`)].filter((node) => {
             const { rows } = node.__data__.datum;
             return row === null ? rows.length > 0 : rows.length === 1 && rows[0] === row;
           })""",
        [figure, row],
    )


def first(handle):
    return handle.get_property("0").as_element()


def opacities(page, figure):
    """The opacity of each drawn mark beside the rows of its texts."""
    return page.evaluate(
        """figure => [...document.querySelectorAll(`${figure} .of-texts`)].map(
             (node) => [node.__data__.datum.rows, Number(node.style.opacity || 1)])""",
        figure,
    )


def downloaded(page, figure, kind):
    page.wait_for_timeout(110)  # Chromium drops a page's eleventh download within a second
    page.locator(figure).scroll_into_view_if_needed()
    with page.expect_download() as download:
        page.locator(f"{figure} .downloads").get_by_role("button", name=f"Download {kind}").click()
    return download.value.suggested_filename, download.value.path().read_text("utf-8")


def uncovered(page, figure, texts=1):
    """The first mark of so many texts, or more, that no other one lies above."""
    page.locator(figure).scroll_into_view_if_needed()
    return page.evaluate_handle(
        """([figure, texts]) => [...document.querySelectorAll(`${figure} .of-texts`)].find((node) => {
             const { left, top, width, height } = node.getBoundingClientRect();
             return node.__data__.datum.rows.length >= texts
               && document.elementFromPoint(left + width / 2, top + height / 2) === node;
           })""",
        [figure, texts],
    ).as_element()


def test_a_tap_names_a_text_and_opens_it_and_names_the_texts_of_a_bar(chromium, file, audit):
    phone = {"has_touch": True, "is_mobile": True, "viewport": {"width": 390, "height": 844}}
    with opening(chromium, "blob:", **phone) as open_at:
        page = with_figures(open_at(file))
        point = uncovered(page, FIGURE)
        (row,) = point.evaluate("node => node.__data__.datum.rows")
        text = rows_of(audit)[row]
        point.tap(force=True)
        page.get_by_role("article", name=f"Text id {text['key']}").wait_for()
        said = page.locator(f"{FIGURE} .pointed").inner_text()
        assert said.startswith(f"id {text['key']}: {' '.join(text['tokens'])[:20]}")
        bar = uncovered(page, BARS, texts=2)
        size = len(bar.evaluate("node => node.__data__.datum.rows"))
        bar.tap(force=True)
        until(page, "n => document.querySelector('.count').textContent.startsWith(n)", f"{size} of")
        assert page.locator(f"{BARS} .pointed").inner_text() == f"{size} texts"


def test_hovering_names_a_text_and_a_click_opens_it(opened, audit):
    page = opened()
    point = uncovered(page, FIGURE)
    (row,) = point.evaluate("node => node.__data__.datum.rows")
    point.hover(force=True)
    page.locator("#vg-tooltip-element.visible").wait_for()
    said = page.locator("#vg-tooltip-element").inner_text()
    text = rows_of(audit)[row]
    assert f"id {text['key']}: {' '.join(text['tokens'])[:20]}" in said
    assert f"{text['n_tokens']}" in said
    point.click(force=True)
    page.get_by_role("article", name=f"Text id {text['key']}").wait_for()
    page.go_back()
    page.locator(".opened").wait_for(state="detached")


def test_the_address_of_a_brush_filters_table_and_figures_and_show_all_clears_it(opened, audit):
    rows = inside(audit)
    page = opened(brushed())
    assert count(page).startswith(f"{len(rows)} of 300 texts")
    assert names(page)[:5] == [f"id {row['key']}" for row in rows[:5]]
    chosen = {row["row"] for row in rows}
    assert 0 < len(chosen) < 300
    for figure in (FIGURE, BARS, "#figure-permutation", "#figure-exact-search"):
        for of_mark, opacity in opacities(page, figure):
            if of_mark:
                share = len(chosen.intersection(of_mark)) / len(of_mark)
                assert opacity == pytest.approx(0.15 + 0.85 * share, abs=1e-5)
    assert page.locator(f"{FIGURE} .brush").is_visible()
    page.get_by_role("button", name="Show all").click()
    assert count(page) == "All 300 texts"
    assert address(page) == "#texts"
    assert {opacity for _, opacity in opacities(page, BARS)} == {1}
    assert page.locator(f"{FIGURE} .brush").is_hidden()
    page.go_back()
    until(
        page, "n => document.querySelector('.count').textContent.startsWith(n)", f"{len(rows)} of"
    )


def test_the_rectangle_of_a_brush_holds_just_the_points_inside(opened):
    page = opened(brushed())
    inside_of = page.evaluate(
        """figure => {
             const box = document.querySelector(`${figure} .brush`).getBoundingClientRect();
             return [...document.querySelectorAll(`${figure} .of-texts`)].map((node) => {
               const { left, top, width, height } = node.getBoundingClientRect();
               const [x, y] = [left + width / 2, top + height / 2];
               const isInside = x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
               const isNear = Math.min(Math.abs(y - box.top), Math.abs(y - box.bottom)) < 2;
               return [isInside || isNear, isInside && !isNear, Number(node.style.opacity)];
             });
           }""",
        FIGURE,
    )
    assert sum(surely for _, surely, _ in inside_of) > 30
    for possibly, surely, opacity in inside_of:
        assert surely <= (opacity == 1) <= possibly


def test_a_drag_brushes_and_one_step_back_undoes_it(opened, audit):
    page = opened()
    chart = page.locator(f"{FIGURE} .chart")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 150)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(box["x"] + 60 + 50 * step, box["y"] + 150 + 5 * step)
    page.mouse.up()
    until(page, "location.hash.startsWith('#brush=entropy')")
    until(page, "!document.querySelector('.count').textContent.startsWith('All')")
    page.wait_for_timeout(300)  # the address is written when the reader has stopped
    assert count(opened(address(page))) == count(page)
    page.go_back()
    until(page, "document.querySelector('.count').textContent === 'All 300 texts'")


def test_a_click_on_a_bar_selects_its_texts_and_a_filter_of_the_table_dims_the_figures(
    opened, audit
):
    page = opened()
    bar = page.evaluate_handle(
        """figure => [...document.querySelectorAll(`${figure} .of-texts`)]
             .find((node) => node.__data__.datum.rows.length > 2)""",
        BARS,
    ).as_element()
    rows = bar.evaluate("node => node.__data__.datum.rows")
    bar.scroll_into_view_if_needed()
    bar.dispatch_event("click")
    until(
        page, "n => document.querySelector('.count').textContent.startsWith(n)", f"{len(rows)} of"
    )
    page.locator(BARS).get_by_role("button", name="Clear the selection").click()
    assert count(page) == "All 300 texts"
    page.locator(".of-right select").select_option("wrong")
    wrong = {row["row"] for row in rows_of(audit) if row["label"] != row["predicted"]}
    for of_mark, opacity in opacities(page, FIGURE):
        assert opacity == pytest.approx(1 if of_mark[0] in wrong else 0.15)


def test_the_keyboard_goes_through_the_marks_opens_selects_and_clears(opened):
    page = opened()
    chart = page.locator(f"{FIGURE} .chart")
    chart.focus()
    page.keyboard.press("ArrowRight")
    name = page.locator(f"{FIGURE} .pointed").inner_text().split(":")[0]
    assert name.startswith("id key<")
    assert page.locator(f"{FIGURE} .ring").is_visible()
    page.keyboard.press("Enter")
    page.get_by_role("article", name=f"Text {name}").wait_for()
    chart.focus()
    for _ in range(150):
        page.keyboard.press("Shift+ArrowRight")
    until(page, "document.querySelector('.count').textContent.includes('selection')")
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.count').textContent === 'All 300 texts'")


def test_the_csv_has_exactly_the_drawn_rows(opened, audit):
    page = opened()
    name, text = downloaded(page, FIGURE, "CSV")
    assert name == "entropy.csv"
    rows = list(csv.DictReader(io.StringIO(text)))
    points = [row for row in rows if row["mark"] == "circle"]
    expected = [r for r in rows_of(audit) if r["n_tokens"] >= 2]
    assert [row["text"] for row in points] == [f"id {r['key']}" for r in expected]
    assert [float(row["entropy"]) for row in points] == pytest.approx(
        [r["entropy"] for r in expected], abs=1e-4
    )
    assert len(rows) - len(points) == 2  # the line of uniform attention
    _, text = downloaded(page, BARS, "CSV")
    bars = [row for row in csv.DictReader(io.StringIO(text)) if row["mark"] == "bar"]
    taus = audit.tables["agreement"]["tau_attention_gradient"].to_numpy()
    assert sum(int(row["texts"]) for row in bars) == np.isfinite(taus).sum()
    listed = [name for row in bars for name in row["text"].split("; ") if name]
    assert sorted(listed) == sorted(f"id key<{i}>" for i in np.flatnonzero(np.isfinite(taus)))


def test_every_svg_parses_is_light_and_has_title_and_legend(opened, audit):
    page = opened()
    keys = page.evaluate("[...document.querySelectorAll('figure')].map((figure) => figure.id)")
    assert len(keys) > 10
    for key in keys:
        name, text = downloaded(page, f"#{key}", "SVG")
        assert name == f"{key.removeprefix('figure-')}.svg"
        root = ElementTree.fromstring(text)
        written = " ".join(
            "".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")
        )
        words = page.locator(f"#{key} h3").inner_text().split()
        assert all(word in written for word in words)
        assert root[0].get("fill") == "#ffffff"


def test_every_figure_has_an_anchor_and_a_text_alternative(opened, audit):
    page = opened("#figure-entropy")
    assert page.locator(f"{FIGURE} h3 a").get_attribute("href") == "#figure-entropy"
    assert page.locator(FIGURE).evaluate("figure => figure.getBoundingClientRect().top < 800")
    labels = page.evaluate(
        "[...document.querySelectorAll('[role=graphics-document]')].map((chart) => chart.ariaLabel)"
    )
    titles = page.locator("figure h3").all_inner_texts()
    assert len(labels) == len(titles)
    for label, title in zip(labels, titles, strict=True):
        assert label.startswith(title)
        assert "n = " in label
        assert "from " in label


def test_hostile_texts_and_classes_do_nothing_in_figures(opened, tmp_path):
    audit = make_audit(n=30, classes=12)
    instances = audit.tables["instances"]
    tokens = [[HOSTILE[(i + t) % len(HOSTILE)] for t in range(len(words))]
              for i, words in enumerate(instances["tokens"].to_pylist())]  # fmt: skip
    keys = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(30)]
    for name, values in {"tokens": tokens, "key": keys}.items():
        place = instances.column_names.index(name)
        instances = instances.set_column(place, name, [values])
    audit.tables["instances"] = instances
    path = tmp_path / "hostile.html"
    path.write_text(report(replace(audit, classes=HOSTILE[:12])), "utf-8")
    page = opened(path=path)
    for key in ("tau-gradient", "entropy", "permutation"):
        chart = page.locator(f"#figure-{key} .chart")
        chart.scroll_into_view_if_needed()
        chart.focus()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
        first(marks(page, f"#figure-{key}")).hover(force=True)
        page.locator("#vg-tooltip-element.visible").wait_for()
        _, text = downloaded(page, f"#figure-{key}", "CSV")
        assert not any(
            cell.startswith(("=", "@", "\t"))
            for row in csv.reader(io.StringIO(text))
            for cell in row
        )
        ElementTree.fromstring(downloaded(page, f"#figure-{key}", "SVG")[1])
    assert page.locator("img").count() == 0
    assert page.locator("#vg-tooltip-element script, figure .pointed *").count() == 0


@pytest.mark.parametrize(
    "brush", ["nothing:0,1", "entropy", "entropy:x,y", '"><script>alert(1)</script>:0,1']
)
def test_a_brush_of_nothing_filters_nothing(opened, brush):
    page = opened()
    page.evaluate("brush => { location.hash = `brush=${encodeURIComponent(brush)}`; }", brush)
    page.wait_for_timeout(200)
    assert count(page) == "All 300 texts"


def test_an_anonymous_page_links_its_figures_and_names_no_text(opened, audit, tmp_path):
    path = tmp_path / "anonymous.html"
    path.write_text(report(without_texts(audit)), "utf-8")
    page = opened(brushed(), path)
    assert count(page).startswith(f"{len(inside(audit))} of 300 texts")
    _, text = downloaded(page, FIGURE, "CSV")
    assert "key<" not in text
    page.locator(f"{FIGURE} .chart").focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(f"{FIGURE} .pointed").inner_text()
    assert said
    assert "key<" not in said
    assert "script" not in said
