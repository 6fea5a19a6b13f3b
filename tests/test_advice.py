"""What to do next, for each answer, and the places of the page that show it."""

import re
from dataclasses import replace
from urllib.parse import parse_qs

import numpy as np
import pyarrow as pa
import pytest
from made_audits import make_audit
from made_rates import rates

from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.enough_texts import MOST, texts_for_class, texts_for_side
from heedmap.experiments.findings import Finding
from heedmap.experiments.intervals import of_share
from heedmap.experiments.levels import SIGNS
from heedmap.experiments.questions.alternatives import CANDIDATES
from heedmap.report.advice import next_steps, rests_on
from heedmap.report.page import page

RATES = rates()
QUESTIONS = ("skill", "needed", "sufficient", "permutation")


def finding(key, level="for", **more):
    return Finding(
        **{
            "key": key, "question": f"{key}?", "measure": key, "value": 0.9, "low": 0.8, "high": 0.95, "n": 80,
            "distinct": 80, "left_out": {}, "reading": "good", "level": level, "meaning": "-", "kind": "skill",
        } | more
    )  # fmt: skip


def audited(holding, *, n=80, classes=2, moved=1.0, better=None, labels=None, skill=None):
    """An audit in which the map holds for some texts. `holding`: by class, the share of its texts."""
    audit = make_audit(n=n, classes=classes)
    predicted = np.arange(n) % len(holding)
    place = np.arange(n) // len(holding)
    holds = place < np.array(holding)[predicted] * (n // len(holding))
    zeros = np.zeros(n)
    columns = {
        "row": np.arange(n), "predicted": predicted, "probability": np.ones(n), "guessing": np.full(n, 0.5),
        "gone_map": 0.5 * holds, "alone_map": 0.5 + 0.5 * holds, "among_map": 0.5 + 0.5 * holds,
        "highlighted": np.ones(n), "gone_random": zeros, "alone_random": np.full(n, 0.5),
        "among_random": np.full(n, 0.5), "unseen": np.full(n, 0.5), "gone_best": np.full(n, 0.5),
    }  # fmt: skip
    for name in CANDIDATES:
        passes = float(name == better)
        columns |= {f"gone_{name}": np.full(n, 0.5 * passes), f"highlighted_{name}": np.ones(n)}
        columns |= {f"{kind}_{name}": np.full(n, 0.5 + 0.5 * passes) for kind in ("alone", "among")}
    tables = {**audit.tables, "highlights": pa.table(columns)}
    tables["alternatives"] = tables["highlights"].select(["row", "gone_best"])
    shuffled = tables["permutation"].append_column("mean_tvd", [np.full(n, moved)])
    place = shuffled.column_names.index("predicted")
    tables["permutation"] = shuffled.set_column(place, "predicted", [predicted])
    instances = tables["instances"]
    for name, values in {"predicted": predicted, "label": labels or predicted.tolist()}.items():
        instances = instances.set_column(instances.column_names.index(name), name, [values])
    tables["instances"] = instances
    findings = [finding("skill"), *(finding(key) for key in QUESTIONS[1:])]
    if skill is not None:
        findings[0] = skill
    return replace(audit, tables=tables, findings=findings, rates=RATES)


def steps_of(audit):
    line = bottom_line(audit, RATES)
    return line, next_steps(audit, line, RATES)


def test_a_yes_may_be_shown_and_the_texts_that_it_misses_come_first():
    line, (show, seeds) = steps_of(audited([1.0, 0.95]))
    assert line.answer == "yes"
    assert show.text.startswith("You may show the map with texts like these. Look first")
    assert [place.words for place in show.evidence] == ["2 texts where it misses them"]
    assert parse_qs(show.evidence[0].address[1:]) == {"level": ["against"]}
    assert seeds.command == "heedmap retrain stability --run RUN"
    _, (show, _) = steps_of(audited([1.0, 1.0]))
    assert show.text == "You may show the map with texts like these."
    assert show.evidence == ()


def test_the_right_words_are_shown_as_words():
    line, (words, *_) = steps_of(audited([1.0, 1.0], moved=0.0))
    assert line.answer == "words"
    assert words.text.startswith("Show the map as the words that the answer rests on")


def test_where_one_class_fails_its_texts_are_named():
    line, steps = steps_of(audited([1.0, 0.0]))
    assert line.answer == "in part"
    fails = next(step for step in steps if step.text.startswith("It fails for"))
    assert fails.text == "It fails for texts predicted “plain”: read some of them."
    assert [parse_qs(place.address[1:]) for place in fails.evidence] == [{"predicted": ["plain"]}]


def test_another_map_is_shown_where_it_passes_the_same_test():
    line, (other, *_) = steps_of(audited([0.0, 0.0], better="leave_one_out"))
    assert line.answer == "no"
    assert other.text.startswith("Show leave-one-out")
    assert other.text.endswith("in 80 of 80 texts.")


def test_of_too_few_texts_it_is_said_how_many_are_needed():
    line, (more, *others) = steps_of(audited([1.0] * 8, n=32, classes=8))  # 4 texts of each class
    assert line.answer == "cannot tell"
    assert more.text.endswith(
        "(the smallest has 4). At the shares predicted here, that takes about 240 texts that are read again; "
        "this audit read 32."
    )
    assert not any(step.command for step in others)  # nothing that other seeds could repeat


def test_an_uncertain_share_of_texts_says_how_many_would_settle_it():
    line, steps = steps_of(audited([0.85, 0.85], n=40))
    assert line.answer == "yes"
    (unsure,) = [step for step in steps if step.text.startswith("It is not certain")]
    assert "it does in 85% [70%, 94%]. If more texts are like these, about 77 with" in unsure.text
    assert texts_for_side(0.85, 0.75) == 77
    assert unsure.text.endswith("this audit has 40.")
    assert unsure.evidence[0].address == "#measured"
    _, steps = steps_of(audited([0.75, 0.75], n=40))
    assert any("more texts would hardly settle it" in step.text for step in steps)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.6, "At this accuracy, about 400 different texts would do; this audit has 80."),
        (0.52, "The accuracy must be above 0.55: if it is 0.52, as measured, more texts "),
    ],
)  # fmt: skip
def test_of_a_model_that_may_not_predict_it_is_said_whether_more_texts_help(value, text):
    doubt = finding(
        "skill", "cannot tell", value=value, low=0.45, high=0.7,
        reading="between “too weak to explain” and “modest”",
    )  # fmt: skip
    line, (step,) = steps_of(audited([1.0, 1.0], skill=doubt))
    assert line.answer == "cannot tell"
    assert text in step.text
    assert step.evidence[0].address == "#finding-skill"


def test_of_a_model_that_does_not_predict_no_number_of_texts_is_promised():
    weak = finding("skill", "against", value=0.5, low=0.4, high=0.52, reading="too weak to explain")
    _, (step,) = steps_of(audited([1.0, 1.0], skill=weak))
    assert step.text == "First make a model that does."


def test_other_seeds_are_not_asked_for_again_nor_of_models_that_come_trained():
    audit = audited([1.0, 1.0])
    asked = replace(audit, findings=[*audit.findings, finding("stability", "for comparison")])
    assert not any(step.command for step in steps_of(asked)[1])
    trained = replace(audit, settings=audit.settings.model_copy(update={"train": None}))
    assert not any(step.command for step in steps_of(trained)[1])


def test_every_sentence_that_was_measured_has_its_evidence():
    audit = audited([1.0, 0.9])
    steps = rests_on(audit, bottom_line(audit, RATES), RATES, ["permutation"])
    addresses = [[place.address for place in step.evidence] for step in steps]
    assert addresses == [
        ["#finding-needed"],
        ["#finding-sufficient"],
        ["#level=against"],
        ["#finding-permutation", "#figure-permutation"],
    ]


@pytest.mark.parametrize("holding", [[1.0, 0.9], [1.0, 0.0], [0.0, 0.0], [0.5, 0.5]])
def test_every_address_of_the_page_is_there(holding):
    html = page(audited(holding))
    block = html[html.index('class="bottom-line') : html.index('class="overview')]
    addresses = re.findall(r'href="#([^"]+)"', block)
    assert addresses
    for address in addresses:
        assert "=" in address or f'id="{address}"' in html, address
    assert any(sign in block for sign in SIGNS.values())


@pytest.mark.parametrize("threshold", [0.15, 0.5, 0.85])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_so_many_texts_are_the_fewest_whose_interval_is_apart(share, threshold):
    def is_apart(n):
        held = np.arange(n) < round(share * n)
        low, high = of_share(held.astype(float))
        return low >= threshold if share >= threshold else high < threshold

    needed = texts_for_side(share, threshold)
    if share == threshold:
        assert needed is None
        return
    whole = range(10, needed + 200, 10)  # shares of tenths are whole counts there
    slow = next(n for n in whole if is_apart(n))
    assert slow - 10 < needed <= slow
    assert needed <= MOST


def test_of_a_class_without_a_text_nothing_is_forecast():
    assert texts_for_class(0, 80, 30) is None
    assert texts_for_class(30, 80, 30) == 80
