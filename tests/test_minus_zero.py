"""No number is shown as minus zero."""

import numpy as np

from heedmap.experiments.findings import Finding
from heedmap.experiments.questions.class_erasure import _number
from heedmap.experiments.results import signed_percent
from heedmap.experiments.rounding import number


def test_small_negative_numbers_have_no_minus_before_zero():
    assert number(-0.0) == "0.00"
    assert _number(np.array([-0.001])) == "0.00"
    assert signed_percent(-0.001) == "0%"
    finding = Finding("a", "tau", "?", "m", -0.0, -0.0, 0.5, 3, {}, "", "mixed", "", 3)
    assert finding.number == "0 [0, 0.5], n = 3"
