"""Rates written by hand."""

from heedmap.experiments.rates import ALL, RULES, Answers, OfFamily, OfKind, Rates
from heedmap.experiments.rule import Thresholds


def family(truth, **counts):
    said = {name.replace("_", " "): count for name, count in counts.items()}
    return OfFamily(truth=truth, answers=Answers(n=sum(said.values()), counts=said))


def kind(right=40, wrong=60):
    return OfKind(
        families={
            "cue attended": family("right", yes=right - 2, in_part=2),
            "random words attended": family("wrong", no=wrong - 3, in_part=2, yes=1),
        }
    )


def rates(**kinds):
    return Rates(
        rules=RULES, data=None, name="by hand", plants=100, thresholds=Thresholds(),
        kinds={ALL: kind(), "lstm": kind(), **kinds},
    )  # fmt: skip
