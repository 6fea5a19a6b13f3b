"""The scale of a question that decides: the range between its thresholds is shaded and named."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_audits import Elements, make_audit

from heedmap.experiments.findings import ClassNumber, judged
from heedmap.report.page import page
from heedmap.report.verdict import verdicts

RANGES = ["+ for from 0.80", "~ mixed from 0.40 to 0.80", "− against below 0.40"]


@pytest.fixture(scope="module")
def audit():
    """An audit with a share of the lead that is mixed from .4 to .8."""
    made = make_audit()
    first, *others = made.findings
    share = replace(
        first, key="needed", kind="share", value=0.6, low=0.5, high=0.7, level="mixed",
        edges=(0.4, 0.8), relative=None,
    )  # fmt: skip
    return replace(made, findings=[share, *others])


def test_the_ranges_fill_the_scale_and_the_value_lies_in_its_own(audit):
    share, *_ = verdicts(audit)
    assert [f"{zone.sign} {zone.words} {zone.span}" for zone in share.zones] == RANGES
    assert [(zone.start, zone.width) for zone in share.zones] == [(80, 20), (40, 40), (0, 40)]
    (mixed,) = [zone for zone in share.zones if zone.level == "mixed"]
    assert mixed.start < share.dot < mixed.start + mixed.width


def test_each_range_is_shaded_and_has_its_shade_in_the_legend(audit):
    elements = Elements(page(audit))
    shaded = [one["class"] for tag, one in elements.found if tag == "span" and _has(one, "zone")]
    assert shaded[:3] == ["zone for", "zone mixed", "zone against"]
    legend = [one["class"] for tag, one in elements.found if tag == "i" and "class" in one]
    assert legend[:3] == ["against", "mixed", "for"]
    text = " ".join(" ".join(elements.text).split())
    assert all(one in text for one in RANGES)


def _has(attributes, name):
    return name in (attributes.get("class") or "").split()


def test_thresholds_that_meet_leave_no_mixed_range(audit):
    first, *others = audit.findings
    met, *_ = verdicts(replace(audit, findings=[replace(first, edges=(0.5, 0.5)), *others]))
    assert [zone.level for zone in met.zones] == ["for", "against"]
    assert math.isclose(sum(zone.width for zone in met.zones), 100)


def test_the_level_is_that_of_the_zone_unless_something_on_the_scale_lies_across(audit):
    first, *others = audit.findings
    rng = np.random.default_rng(0)
    for _ in range(60):
        low, value, high = np.sort(rng.uniform(-0.2, 1.4, 3)).tolist()
        classes = {name: ClassNumber(rng.uniform(0, 1.2), n) for name, n in (("a", 9), ("b", 4))}
        made = replace(first, value=value, low=low, high=high, by_class=classes)
        shown, *_ = verdicts(replace(audit, findings=[judged(made, (0.4, 0.8), True), *others]))
        zone = "against" if value < 0.4 else "mixed" if value < 0.8 else "for"
        is_across = {"for": low < 0.4 or classes["a"].value < 0.4, "against": high >= 0.8}
        assert shown.finding.level == ("mixed" if is_across.get(zone) else zone)
        assert [words.split(":")[0] for _, words in shown.ticks] == ["a"], "b has too few texts"
