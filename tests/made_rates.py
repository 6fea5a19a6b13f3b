"""Rates written by hand."""

from heedmap.experiments.rates import RULES, QuestionRates, Rate, Rates


def rate(count=1, n=50, low=0.01, high=0.1):
    return Rate(count=count, n=n, low=low, high=high)


def question(for_edge=None, against_edge=None, auc_low=0.8):
    return QuestionRates(
        auc=0.9, auc_low=auc_low, auc_high=0.95, for_edge=for_edge, against_edge=against_edge,
        false_for=rate(), false_against=rate(2), power=rate(40), caught=rate(30),
    )  # fmt: skip


def rates(**questions):
    verdicts = {
        "wrong": {"yes": rate(1, 40, 0.0, 0.13), "no": rate(30, 40, 0.6, 0.86)},
        "right": {"yes": rate(15, 20, 0.53, 0.89), "no": rate(0, 20, 0.0, 0.16)},
    }
    return Rates(
        rules=RULES, data=None, name="by hand", plants=60, questions=questions, verdicts=verdicts
    )
