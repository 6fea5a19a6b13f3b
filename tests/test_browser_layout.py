"""Where things stand: on the first screens, on paper, and beside the reference pictures of the report."""

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browsers import chromium as chromium  # noqa: PLC0414  # the fixture
from browsers import real_audit
from made_audits import make_audit
from PIL import Image

from heedmap.experiments.rates import packaged_rates
from heedmap.report.page import page as report

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::UserWarning")]
REFERENCE = Path(__file__).parent / "reference"
FONT = REFERENCE / "font.json"
WIDTH = 400  # pixels of a reference picture
TOLERANCE = 2.0  # of 255, the mean difference of two pictures
SCREENS = [
    *((width, scheme, "screen") for width in (390, 1280, 2560) for scheme in ("light", "dark")),
    (720, "light", "print"),
]


@pytest.fixture
def opened(chromium, tmp_path):
    """Open the report of an audit; `settled`: wait until its figures are drawn."""
    contexts = []

    def open_report(audit, address="", width=1280, scheme="light", height=800):
        path = tmp_path / "report.html"
        path.write_text(report(audit), "utf-8")
        size = {"width": width, "height": height}
        context = chromium.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.goto(f"file://{path}{address}")
        page.locator(".table .body .line").first.wait_for()
        return page

    yield open_report
    for context in contexts:
        context.close()


@pytest.mark.parametrize("classes", [2, 5])
def test_the_texts_begin_within_the_second_screen(opened, classes):
    page = opened(real_audit(classes))
    top = page.evaluate("document.getElementById('texts').getBoundingClientRect().top + scrollY")
    assert top < 1600


def test_on_a_phone_no_names_of_an_axis_overlap_and_a_cut_text_ends_in_dots(opened):
    page = opened(real_audit(2), width=390, height=844)
    page.locator("#figure-plausible-faithful svg").wait_for()
    axes = page.evaluate(
        "() => [...document.querySelectorAll('.chart .role-axis-label')].map((axis) =>"
        " [...axis.querySelectorAll('text')].filter((t) => t.getAttribute('opacity') !== '0').map((t) => {"
        " const { left, right, top, bottom } = t.getBoundingClientRect();"
        " return [t.textContent, left, right, top, bottom]; }))"
    )
    assert len(axes) > 20
    for axis in axes:
        for i, (name, left, right, top, bottom) in enumerate(axis):
            for other, start, end, high, low in axis[:i]:
                assert min(right, end) <= max(left, start) or min(bottom, low) <= max(top, high), (
                    f"{name} overlaps {other}"
                )
    text = page.locator(".table .body .line .of-text").first
    text.scroll_into_view_if_needed()
    shown = "(cell) => ['display', 'textOverflow'].map((name) => getComputedStyle(cell)[name])"
    assert text.evaluate(shown) == ["block", "ellipsis"]


def pages_of(pdf):
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("count", [0, 2])
def test_a_real_report_prints_on_four_pages_at_most(opened, count, scheme):
    """The opened texts, or else the most telling ones, whatever the screen is."""
    audit = real_audit(2)
    keys = audit.tables["instances"]["key"].to_pylist()
    address = f"#text={keys[0]}&pin={keys[1]}" if count else ""
    page = opened(audit, address, width=2560, scheme=scheme)
    if count:
        page.locator(".opened").nth(1).wait_for()
    assert 2 <= pages_of(page.pdf(format="A4")) <= 4
    assert page.locator("#measured").get_attribute("open") is None  # as it was on the screen


def test_what_decides_is_on_paper_in_light_colours_and_nothing_is_cut(opened):
    page = opened(real_audit(2), scheme="dark", width=720)
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for place in ("#measured p", ".next", "#card .verdict:not(.compared) .parts span", "#run dl"):
        assert page.locator(place).first.is_visible(), place
    assert page.locator("#instances .instance").first.is_visible()
    lines = (
        page.evaluate(  # all maps of a text stand side by side, or the report takes a fifth page
            "() => [...document.querySelectorAll('.instance .rows')].map((rows) =>"
            " new Set([...rows.children].map((map) => map.offsetTop)).size)"
        )
    )
    assert set(lines) == {1}
    for place in (".table", ".copies button", "#figures", "#reading", "nav"):
        assert not page.locator(place).first.is_visible(), place
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    cut = page.evaluate(
        "() => [...document.querySelectorAll('body *')].filter((x) => x.checkVisibility() &&"
        " getComputedStyle(x).overflow !== 'visible' && !x.closest('.track') &&"
        " (x.scrollWidth > x.clientWidth + 1 || x.scrollHeight > x.clientHeight + 1))"
        ".map((x) => x.outerHTML.slice(0, 100))"
    )
    assert cut == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 720


def drawn(page):
    """Return the first screens of a page as a small picture."""
    width = page.viewport_size["width"]
    page.wait_for_timeout(300)
    clip = {"x": 0, "y": 0, "width": width, "height": min(2 * width + 390, 2400)}
    picture = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip))).convert("RGB")
    small = picture.resize((WIDTH, round(picture.height * WIDTH / width)), Image.Resampling.BOX)
    return small.quantize(
        24
    )  # in few colours, as the reference is, so that rounding is no difference


def font_of(page):
    """Return how wide the page's fonts set a sentence: pictures made with others are not comparable."""
    return page.evaluate(
        "() => ['system-ui', 'ui-monospace'].map((family) => {"
        " const pen = document.createElement('canvas').getContext('2d');"
        " pen.font = '16px ' + family + ', sans-serif';"
        " return Math.round(100 * pen.measureText('Should you heed the heat map? 0.123').width) / 100; })"
    )


@pytest.mark.parametrize(("width", "scheme", "media"), SCREENS)
def test_the_report_looks_as_in_its_reference_picture(opened, width, scheme, media):
    """HEEDMAP_SNAPSHOT=1 rewrites the pictures."""
    audit = replace(make_audit(n=300, classes=3), rates=packaged_rates())
    page = opened(audit, width=width, scheme=scheme)
    if media == "print":
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
    path = REFERENCE / f"report-{width}-{scheme}-{media}.png"
    font = font_of(page)
    picture = drawn(page)
    if os.environ.get("HEEDMAP_SNAPSHOT"):
        REFERENCE.mkdir(exist_ok=True)
        FONT.write_text(json.dumps(font) + "\n")
        picture.save(path, optimize=True)
        assert path.stat().st_size < 60_000
        return
    expected = json.loads(FONT.read_text())
    if font != expected:
        pytest.skip(f"the pictures were made with other fonts: widths {expected}, here {font}")
    reference = Image.open(path).convert("RGB")
    assert picture.size == reference.size
    difference = np.abs(
        np.asarray(picture.convert("RGB"), dtype=float) - np.asarray(reference, dtype=float)
    )
    assert difference.mean() <= TOLERANCE
