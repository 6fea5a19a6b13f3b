"""The report in Chromium: what a reader does with mouse, keyboard and address, and what it must not do."""

import re
from dataclasses import replace
from functools import partial

import pytest
from browsers import address, count, hostile_audit, names, opening, rows_of, until
from browsers import chromium as chromium  # noqa: PLC0414  # the fixture
from made_audits import make_audit

from heedmap.experiments.rates import packaged_rates
from heedmap.report.page import page as report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def audit():
    return make_audit(n=300, classes=3)


@pytest.fixture(scope="module")
def file(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report(audit), "utf-8")
    return path


@pytest.fixture
def opened(chromium, file):
    """Open the report at an address."""
    with opening(chromium) as open_at:
        yield partial(open_at, file)


def test_the_table_sorts_by_a_click_and_the_address_restores_it(opened, audit):
    page = opened()
    assert count(page) == "All 300 texts"
    page.get_by_role("columnheader", name="confidence").get_by_role("button").click()
    ranked = sorted(rows_of(audit), key=lambda row: -float(f"{max(row['probabilities']):.7g}"))
    first = [f"id {row['key']}" for row in ranked[:5]]
    assert names(page)[:5] == first
    assert address(page) == "#sort=-confidence"
    head = page.locator("[role=columnheader]", has_text="confidence")
    assert head.get_attribute("aria-sort") == "descending"
    again = opened("#sort=-confidence")
    assert names(again)[:5] == first
    page.go_back()
    assert names(page)[0] == "id key<0>"


def test_filters_and_search_leave_the_texts_that_fit(opened, audit):
    page = opened()
    page.locator(".of-right select").select_option("wrong")
    wrong = [row for row in rows_of(audit) if row["label"] != row["predicted"]]
    assert count(page) == f"{len(wrong)} of 300 texts"
    page.locator(".of-shortest input").fill("12")
    long = [row for row in wrong if row["n_tokens"] >= 12]
    assert count(page) == f"{len(long)} of 300 texts"
    page.get_by_role("searchbox").fill("<SCRIPT>alert")
    found = [row for row in long if any("<script>alert" in token for token in row["tokens"])]
    assert count(page) == f"{len(found)} of 300 texts"
    until(page, "location.hash.includes('search')")
    assert count(opened(address(page))) == count(page)
    page.get_by_role("button", name="Show all").click()
    assert count(page) == "All 300 texts"
    assert address(page) == "#texts"


def test_a_text_opens_at_its_address_and_closes_by_a_step_back(opened, audit):
    page = opened()
    page.locator(".table .body .line").nth(1).click()
    page.get_by_role("article", name="Text id key<1>").wait_for()
    assert address(page) == "#text=key%3C1%3E"
    word = page.locator(".lines th[data-word='2']")
    word.hover()
    numbers = page.locator(".legend tbody tr").first.locator("td").last
    attention = rows_of(audit)[1]["attention"]
    assert abs(float(numbers.inner_text()) - attention[2]) <= max(attention) / 127
    page.go_back()
    page.locator(".opened").wait_for(state="detached")
    page.go_forward()
    page.locator(".opened").wait_for()
    again = opened("#text=key%3C1%3E")
    assert again.locator(".opened h3").inner_text() == "id key<1>"


def test_a_telling_text_takes_the_focus_also_where_it_is_open_already(opened):
    page = opened("#sort=-confidence")
    link = page.locator(".telling a").first
    for _ in range(2):
        link.focus()
        page.keyboard.press("Enter")
        until(page, "document.activeElement.closest('.opened') !== null")
    assert address(page) == link.get_attribute("href")


def test_two_texts_stand_side_by_side(opened):
    page = opened("#text=key%3C1%3E")
    page.get_by_role("button", name="Pin").click()
    page.get_by_role("button", name="Unpin").wait_for()
    page.locator(".table .body .line").nth(3).click()
    page.locator(".opened").nth(1).wait_for()
    left, right = (page.locator(".opened").nth(i).bounding_box() for i in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert page.locator(".opened h3").all_inner_texts() == ["id key<1>", "id key<3>"]


def test_the_keyboard_alone_reaches_a_text_and_its_numbers(opened):
    page = opened()
    page.locator(".table").focus()
    for key in ("ArrowDown", "ArrowDown", "End", "Home", "PageDown", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("article", name="Text id key<9>").wait_for()
    until(page, "document.activeElement.matches('.opened h3')")
    page.keyboard.press("Escape")
    page.locator(".opened").wait_for(state="detached")
    page.locator(".table .line.active", has_text="key<9>").wait_for()
    page.keyboard.press("End")
    page.locator(".table .line.active", has_text="key<299>").wait_for()
    page.locator(".table .line.active").click()
    until(page, "document.activeElement.matches('.opened h3')")
    word = page.locator(".lines th[tabindex='0']").first
    word.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.word") == "1"
    assert page.locator(".legend tbody td.of-number").first.inner_text() != ""


def test_an_address_with_a_filter_shows_the_table_and_names_what_it_does_not_know(opened):
    page = opened("#right=wrong")
    until(page, "document.querySelector('.count').getBoundingClientRect().top < innerHeight")
    page.evaluate("location.hash = 'text=nope&sort=bogus&least=5'")
    until(page, "document.querySelector('.count').textContent.includes('nope')")
    for word in ("text “nope”", "sort “bogus”", "between 0 and 1"):
        assert word in count(page)


def test_the_address_of_a_question_opens_it(opened, audit):
    key = next(f.key for f in audit.findings if f.level == "for comparison")
    page = opened(f"#finding-{key}")
    assert page.locator(f"#finding-{key}").get_attribute("open") is not None
    other = next(f.key for f in reversed(audit.findings) if f.level == "for comparison")
    assert page.locator(f"#finding-{other}").get_attribute("open") is None
    page.evaluate(f"location.hash = 'finding-{other}'")
    until(page, f"document.getElementById('finding-{other}').open")


def test_only_rows_in_sight_are_elements_and_the_last_one_can_be_reached(opened):
    page = opened()
    assert page.locator(".table .body .line").count() < 60
    page.locator(".table .body").evaluate("body => { body.scrollTop = body.scrollHeight; }")
    page.locator(".table .body .line", has_text="key<299>").wait_for()


@pytest.mark.parametrize("width", [390, 1280, 2560])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_never_wider_than_the_screen(chromium, file, width, scheme):
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"file://{file}#text=key%3C1%3E")
    page.locator(".lines .line").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_without_javascript_the_most_telling_texts_are_there(chromium, file):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{file}")
    assert page.locator("#instances .instance").first.is_visible()
    assert page.locator("#explorer").is_hidden()
    context.close()


def test_hostile_texts_are_shown_as_text_and_do_nothing(chromium, tmp_path):
    audit = hostile_audit()
    path = tmp_path / "hostile.html"
    path.write_text(report(audit), "utf-8")
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    wrong = []
    page.on("request", lambda request: wrong.append(request.url))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.goto(f"file://{path}")
    page.locator(".table .body .line").first.wait_for()
    for place in range(6):
        page.locator(".table .body .line").nth(place).click()
        page.locator(".opened h3").wait_for()
        page.wait_for_function(
            "name => document.querySelector('.opened h3').textContent.endsWith(name)",
            arg=f" {place}",
        )
    assert page.locator("img").count() == 0
    assert page.locator(".opened script").count() == 0
    assert [url for url in wrong if url != f"file://{path}"] == []
    context.close()


def test_the_policy_is_kept_and_the_figures_are_drawn(opened):
    page = opened()
    page.locator(".chart svg").first.wait_for()
    assert page.locator(".chart svg").count() == page.locator(".chart").count()
    policy = page.locator("meta[http-equiv]").get_attribute("content")
    assert "unsafe" not in policy


def test_the_bottom_line_is_copied(chromium, tmp_path):
    audit = make_audit(n=30)
    path = tmp_path / "report.html"
    path.write_text(report(replace(audit, rates=packaged_rates())), "utf-8")
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"file://{path}")
    for form, begins in (("text", ""), ("Markdown", "> "), ("LaTeX", "\\begin{quote}\n")):
        page.locator(".copies").get_by_role("button", name=form).click()
        page.get_by_text(f"Copied as {form}.").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(begins)
        assert re.search(r"sha256 of the tables [0-9a-f]{64}\.", copied.replace("\\", ""))
        assert "heedmap 0" in copied
    context.close()
