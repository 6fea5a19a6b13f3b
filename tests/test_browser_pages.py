"""Every kind of page in Chromium: no violation that axe-core finds, all by keyboard, no request, no harm."""

from pathlib import Path

import pytest
from browsers import HOSTILE_NAMES, all_pages
from browsers import chromium as chromium  # noqa: PLC0414  # the fixture

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::UserWarning")]
AXE = Path(__file__).parent.parent / "page" / "node_modules" / "axe-core" / "axe.min.js"
KINDS = ("report", "texts", "comparison", "explanation", "picture", "reproduction")
WITH_A_TEXT = "#text=%3C%2Fscript%3E%3Cb%3E+1"
WITH_TWO = f"{WITH_A_TEXT}&pin=%3Cscript%3Ealert%281%29%3C%2Fscript%3E+0"


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return all_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def opened(chromium, paths):
    """Open a page of a kind at an address."""
    contexts = []

    def open_page(kind, address="", **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.wrong = []
        page.on("request", lambda request: page.wrong.append(request.url))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (page.wrong.append(dialog.message), dialog.dismiss()))
        page.on(
            "console", lambda line: page.wrong.append(line.text) if line.type == "error" else None
        )
        page.goto(paths[kind].as_uri() + address)
        if kind in ("report", "texts"):
            page.locator(".table .body .line").first.wait_for()
        if "pin=" in address or "text=" in address:
            page.locator(".opened").nth(int("pin=" in address)).wait_for()
        assert page.wrong.pop(0) == paths[kind].as_uri() + address.partition("#")[0]
        return page

    yield open_page
    for context in contexts:
        context.close()


def violations(page):
    """Return what axe-core finds, a line each: the rule and the first element."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{rule['id']}: {rule['nodes'][0]['html'][:120]} {rule['nodes'][0]['any'][:1]}"
        for rule in found
    ]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in page/")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize(
    ("kind", "address"),
    [*((kind, "") for kind in KINDS), ("report", WITH_A_TEXT), ("report", WITH_TWO)],
)
def test_axe_finds_no_violation(opened, kind, address, width, scheme):
    size = {"width": width, "height": 800}
    # The page's policy forbids any script but its own, and so axe-core itself.
    page = opened(kind, address, viewport=size, color_scheme=scheme, bypass_csp=True)
    for details in page.locator("details").all():
        details.evaluate("details => { details.open = true; }")
    assert violations(page) == []


@pytest.mark.parametrize("kind", [*KINDS, "card"])
def test_no_request_leaves_a_page_and_hostile_texts_and_names_do_nothing(opened, kind):
    page = opened(kind)
    page.wait_for_timeout(500)
    assert page.wrong == []
    assert page.locator("img").count() == 0
    assert page.locator("[onclick], [onerror], [onload]").count() == 0
    if kind == "card":
        assert page.locator("script").count() == 0
    if kind == "report":
        told = page.locator("#run").text_content()
        assert all(name.rpartition("data/")[2] in told for name in HOSTILE_NAMES)  # not its folder


FOCUS = """() => {
  const place = document.activeElement;
  if (place === null || place === document.body) return null;
  const box = place.getBoundingClientRect();
  const style = getComputedStyle(place);
  const active = place.querySelector(".line.active");
  const line = active === null ? style : getComputedStyle(active);
  const outlined = [style, line].some((s) => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1);
  return {
    name: place.tagName + " " + place.className + " " + (place.textContent || "").slice(0, 30),
    is_seen: box.width > 0 && box.height > 0,
    outlined,
    number: window.controls.indexOf(place),
  };
}"""
CONTROLS = """() => {
  const found = document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']");
  window.controls = [...found]
    .filter((x) => x.tabIndex >= 0 && x.checkVisibility({ visibilityProperty: true }));
  return window.controls.map((x, i) => i);
}"""


@pytest.mark.parametrize(
    ("kind", "address"), [("report", WITH_A_TEXT), ("texts", ""), ("comparison", "")]
)
def test_every_control_is_reached_by_tab_and_its_focus_is_seen(opened, kind, address):
    page = opened(kind, address)
    controls = {*page.evaluate(CONTROLS)}
    assert len(controls) > 5
    reached = set()
    page.evaluate("() => { document.body.tabIndex = -1; document.body.focus(); }")
    for _ in range(len(controls) + 20):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus is None:
            break
        assert focus["is_seen"], focus
        assert focus["outlined"], focus
        reached.add(focus["number"])
    assert controls <= reached


def focused(page, name, role="button"):
    """Put the focus on a control as a reader does who has arrived there."""
    place = page.get_by_role(role, name=name).first
    place.focus()
    return place


def test_the_keyboard_works_every_control_of_the_report(opened):
    page = opened("report")
    focused(page, "confidence")
    page.keyboard.press("Enter")
    page.locator("[aria-sort=descending]", has_text="confidence").wait_for()
    page.keyboard.press("Space")  # the focus is still on the head
    page.locator("[aria-sort=ascending]", has_text="confidence").wait_for()
    page.locator(".of-predicted select").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".count").inner_text() != "All 30 texts"
    focused(page, "Show all")
    page.keyboard.press("Space")
    assert page.locator(".count").inner_text() == "All 30 texts"
    page.get_by_role("searchbox").focus()
    page.keyboard.type("onclick")
    assert page.locator(".count").inner_text() != "All 30 texts"
    for summary in ("What it rests on", "What the columns mean"):
        details = page.locator("details", has=page.get_by_text(summary, exact=True)).last
        before = details.get_attribute("open")
        details.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert details.get_attribute("open") != before
    page.locator(".table").focus()
    page.keyboard.press("Enter")
    page.locator(".opened").wait_for()
    focused(page, "Pin")
    page.keyboard.press("Enter")
    focused(page, "Unpin").wait_for()
    focused(page, "Close")
    page.keyboard.press("Enter")
    page.locator(".opened").wait_for(state="detached")
    assert page.wrong == []


def test_the_keyboard_chooses_texts_and_maps_of_the_comparison(opened):
    page = opened("comparison")
    page.locator("#text-list").focus()
    before = page.evaluate("location.hash")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(300)
    assert page.evaluate("location.hash") != before
    for select in page.locator(".choice select").all():
        select.focus()
        page.keyboard.press("ArrowDown")
    assert page.wrong == []
