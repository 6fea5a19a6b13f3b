"""The levels of findings on card and page: in words, in signs, and in colours that everybody can tell apart."""

import itertools
import math
import re
from dataclasses import replace
from importlib.resources import files
from typing import get_args

import numpy as np
import pytest
from made_audits import Elements, make_audit, printed
from made_rates import rates

from heedmap.experiments.findings import ClassNumber, answer_text
from heedmap.experiments.levels import SIGNS, Level
from heedmap.report.page import page
from heedmap.report.verdict import verdicts
from heedmap.report.wording import few_texts, plural
from heedmap.runs.audited import Audit


@pytest.fixture(scope="module")
def judged() -> Audit:
    """An audit with a finding of each level; it speaks against the map below .1 and for it from .6 on."""
    shares: dict[Level, tuple[float, float, float]] = {
        "for": (1.0, 1.0, 1.0),
        "mixed": (0.4, 0.1, 0.7),
        "against": (0.0, -0.1, 0.05),
        "cannot tell": (0.9, math.nan, math.nan),
    }
    audit = make_audit()
    skill, *others = audit.findings
    found = [
        replace(
            finding, level=level, kind="share", reading=f"{share:.0%} of the lead", edges=(0.1, 0.6),
            value=share, low=low, high=high, relative=None,
        )
        for finding, (level, (share, low, high)) in zip(others, shares.items(), strict=False)
    ]  # fmt: skip
    return replace(audit, findings=[skill, *found, *others[len(found) :]], rates=rates())


def test_every_level_is_a_word_and_a_sign_without_colour(judged: Audit) -> None:
    assert set(SIGNS) == set(get_args(Level)) == {f.level for f in judged.findings}
    assert len(set(SIGNS.values())) == len(SIGNS)
    text, shown = printed(judged, 80), " ".join(" ".join(Elements(page(judged)).text).split())
    for finding in judged.findings:
        said = f"{SIGNS[finding.level]} {finding.level}"
        assert re.search(rf"{re.escape(finding.question)}\W+{re.escape(said)}", plain(text))
        assert re.search(rf"{re.escape(finding.question)}\W+{re.escape(said)}", shown)


def plain(text: str) -> str:
    """The words of a card: no frame, no line ends."""
    return " ".join(text.replace("│", " ").split())


def test_the_first_screen_has_the_answer_how_sure_it_is_and_every_level(judged: Audit) -> None:
    screen = plain("\n".join(printed(judged, 80).splitlines()[:24]))
    assert judged.bottom_line.sentence in screen
    assert f"How sure: {judged.bottom_line.rates}" in screen
    for finding in judged.findings:
        if finding.level != "for comparison":
            assert f"{SIGNS[finding.level]} {finding.level} {finding.topic} " in screen
    compared = sum(finding.level == "for comparison" for finding in judged.findings)
    assert f"· {plural(compared, 'question')} for comparison" in screen
    assert "+ for same order as the gradient 1.00 [1.00, 1.00]" in screen


def test_what_a_level_means_is_said_before_the_number(judged: Audit) -> None:
    assert [answer_text(finding) for finding in judged.findings[1:5]] == [
        "speaks for the map, 100% of the lead",
        "leaves it open, 40% of the lead",
        "speaks against the map, 0% of the lead",
        "90% of the lead",
    ]


def test_a_class_stands_beside_its_own_chance_on_card_page_and_notebook(judged: Audit) -> None:
    short = {"neutral": ClassNumber(0.29, 20, 0.169, 0.61, 20), "other": ClassNumber(0.4, 20)}
    first, *others = judged.findings
    audit = replace(judged, findings=[replace(first, by_class=short), *others])
    assert "by predicted class: neutral 0.29 (chance 0.17, at best 0.61); other 0.40" in plain(
        printed(audit, 80)
    )
    shown = " ".join(Elements(page(audit)).text)
    assert "0.29 (chance 0.17, at best 0.61)" in shown
    assert "0.29 (chance 0.17, at best 0.61)" in audit.findings[0]._repr_html_()


def test_classes_without_a_chance_are_not_on_the_card(judged: Audit) -> None:
    alone = [
        replace(each, by_class={"a": ClassNumber(0.29, 20)}, question=f"Question {place}?")
        for place, each in enumerate(judged.findings)
    ]
    assert "by predicted class" not in plain(printed(replace(judged, findings=alone), 80))


def test_of_many_classes_the_card_names_the_first(judged: Audit) -> None:
    many = {f"class {i}": ClassNumber(i / 100, 3, 0.1, 0.9, 3) for i in range(20)}
    (first, *_) = judged.findings
    text = plain(printed(replace(judged, findings=[replace(first, by_class=many)]), 80))
    assert "class 11 0.11 (chance 0.10, at best 0.90); 8 more" in text
    assert "class 12" not in text


def test_a_question_is_followed_by_its_answer_then_the_number_then_the_measure(
    judged: Audit,
) -> None:
    text = plain(printed(judged, 80))
    for finding in judged.findings:
        parts = (finding.question, finding.level, f", n = {finding.n}", f"{finding.measure}:")
        block = text[text.index(finding.question) :]
        assert [block.index(part) for part in parts] == sorted(block.index(part) for part in parts)


@pytest.mark.parametrize("n", [1, 12, 29])
def test_of_few_texts_it_is_said_what_they_can_show(n: int) -> None:
    said = few_texts(n)
    assert said is not None
    few = make_audit(n=n, lengths=tuple(range(2, n + 2)))
    assert f"Caution: {said}." in plain(printed(few, 80))
    assert f"Caution: {said}." in " ".join(Elements(page(few)).text)
    if n == 12:  # Clopper and Pearson: .025 to the power of 1/12, and 6 of 12 from .211 to .789
        assert "for only 74% of similar texts" in said
        assert "±29 points" in said


def test_of_thirty_texts_only_the_questions_that_ask_fewer_are_said_to() -> None:
    many = make_audit(n=30, lengths=tuple(range(2, 32)))
    text = plain(printed(many, 80))
    assert "Caution:" not in text
    assert many.findings[3].n == 15  # half are sampled for integrated gradients
    assert text.count("only 15 different texts: ") == sum(f.n == 15 for f in many.findings)


def test_a_narrow_interval_is_drawn_wider_than_its_dot_also_at_the_end_of_the_scale(
    judged: Audit,
) -> None:
    best = verdicts(judged)[1]
    assert (best.dot, best.middle, best.width) == (100, 100, 0)
    assert declared("bar", "min-width") > declared("dot", "width")
    # It is centred, and the track leaves room beside it for half of it.
    assert declared("track", "margin", 1) >= declared("bar", "min-width") / 2


STYLE = files("heedmap.report").joinpath("style.css").read_text("utf-8")


def declared(name: str, what: str, part: int = 0) -> float:
    """A length of a class in the style sheet, in rem."""
    rule = re.search(rf"^\.{name} {{(.*)}}$", STYLE, re.M)
    assert rule is not None
    (value,) = re.findall(rf" {what}: ([^;]+);", rule[1])
    return float(value.split()[part].removesuffix("rem"))


# What the colour-blind see of a linear RGB colour (Machado, Oliveira & Fernandes 2009).
SIGHTS = {
    "all cones": np.eye(3),
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_colours_of_the_levels_can_be_read_and_told_apart_by_the_colour_blind(
    scheme: int,
) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", STYLE.split(":root")[1 + scheme]))
    levels = ("for", "mixed", "against", "quiet-level")
    zones = ("for-zone", "mixed-zone", "against-zone", "quiet-zone")
    for behind in ("page", "card"):
        for name in (*levels, "text", "soft", "link"):
            assert contrast(colours[name], colours[behind]) >= 4.5, name
    for zone in zones:
        assert contrast(colours["text"], colours[zone]) >= 4.5, zone
    for sight, names in itertools.product(SIGHTS, (levels, zones)):
        for one, other in itertools.combinations(names, 2):
            apart = lab(colours[one], sight) - lab(colours[other], sight)
            assert np.linalg.norm(apart) > 15, (sight, one, other)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_shades_of_the_words_can_be_read_and_their_signs_told_apart(scheme: int) -> None:
    style = STYLE.split(":root")[1 + scheme]
    (text,) = re.findall(r"--text: (#\w{6});", style)
    shades = {
        name: "#{:02x}{:02x}{:02x}".format(*map(int, numbers.split(",")))
        for name, numbers in re.findall(r"--(\w+): (\d+, \d+, \d+);", style)
    }
    assert shades.keys() == {"attention", "importance", "contrary"}
    for name, shade in shades.items():
        assert contrast(text, shade) >= 4.5, name
    for sight in SIGHTS:
        apart = lab(shades["importance"], sight) - lab(shades["contrary"], sight)
        assert np.linalg.norm(apart) > 15, sight


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG."""
    light = sorted(float(linear(x) @ [0.2126, 0.7152, 0.0722]) for x in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


def lab(colour: str, sight: str) -> np.ndarray:
    """CIELAB of a colour as a person sees it."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    seen = np.clip(np.array(SIGHTS[sight]) @ linear(colour), 0, 1)
    xyz = np.array(to_xyz) @ seen / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
