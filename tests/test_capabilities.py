"""A model is asked what it can do, and what it was not asked is said with the reason."""

import numpy as np
from tiny_audits import WORDS, own_model, tiny_audit

import heedmap as hm
from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.registry import applicable, not_asked
from heedmap.report.card import facts


def test_models_that_read_are_asked_everything():
    model, split = own_model("own"), hm.Split(["a"], [WORDS[:3]], np.zeros(1, int))
    assert not_asked(model, split) == {}
    model.capabilities = frozenset({"gradients", "read-out", "classes"})
    assert not_asked(model, split)["highlights"] == ["reading"]
    assert "gradient" in applicable(model, split)
    assert "leave_one_out" not in applicable(model, split)


def test_a_model_that_gives_a_number_is_asked_of_no_decision():
    model, split = own_model("own"), hm.Split(["a"], [WORDS[:3]], np.zeros(1, int))
    model.capabilities = frozenset({"reading", "gradients"})
    assert not_asked(model, split)["decision_flips"] == ["classes"]
    assert "permutation" in applicable(model, split)


def test_what_was_not_asked_is_said_with_what_it_leaves_untold():
    audit = tiny_audit("own")
    assert "not asked" not in dict(facts(audit))
    audit.about["not_asked"] = {"leave_one_out": ["reading"], "baselines": ["reading", "gradients"]}
    said = dict(facts(audit))["not asked"]
    assert said.startswith(
        "leave one out (it cannot read changed input again); baselines (it cannot"
    )
    untold = bottom_line(audit, packaged_rates()).not_tested
    assert [text.split()[0] for text in untold[:3]] == ["what", "whether", "other"]
