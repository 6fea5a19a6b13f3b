"""The debate on own data: its parts, the resumption, the page, the words, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import small_corpus, small_pairs
from tiny_debates import TINY, frame

import heedmap as hm
from heedmap.debates import debate as debates
from heedmap.debates import parts, result
from heedmap.debates.forbidden import most_telling
from heedmap.errors import InputError
from heedmap.experiments.seed_intervals import level_of
from heedmap.papers.jain_wallace.claims import interval
from heedmap.papers.jain_wallace.lines import Line
from heedmap.papers.kit import render
from heedmap.papers.kit.claims import (
    FALLS,
    SURVIVES,
    UNDECIDED,
    Check,
    Side,
    apart,
    judged,
    verdict_of_any,
    verdict_of_most,
)
from heedmap.papers.kit.debate_part import DebateInput, Part
from heedmap.papers.kit.learned import Learned, accuracy
from heedmap.papers.kit.result import Estimate, Result, Table

ALL = dict(parts.debate_parts())


def use(patch, chosen):
    for module in (debates, result):
        patch.setattr(module, "debate_parts", lambda: chosen)


class Recorded:
    """A part that writes a number, and one claim about it."""

    def __init__(self, name, value=0.2, refusal="", stops=False):
        self.value, self.stops, self.runs = value, stops, 0
        self.part = Part(
            name, f"{name.title()} (1999): a paper", "Is it?", 1999, {"size": 1}, lambda _: refusal,
            self.run, lambda subject, options, timer: 60.0, self.read,
        )  # fmt: skip

    def run(self, subject, out, options, how):
        self.runs += 1
        assert options == {"size": 1}
        if self.stops:
            raise InputError("there is no more paper")
        out.mkdir(exist_ok=True)
        (out / "done").write_text(str(self.value))

    def read(self, folder):
        if not (folder / "done").exists():
            return None
        value = float((folder / "done").read_text())
        number = Estimate("the number", value, value - 0.1, value + 0.1)
        side = apart((number.low, number.high))
        claim = judged(
            "It is.", [Check("l", side, (), number)], Learned({}), found="So it was (p. 1)."
        )
        table = Table("T", ["a"], [["b"]])
        return Result("R", [], table, [table, claim], [], pd.DataFrame(), table, {})


@pytest.fixture
def recorded(monkeypatch):
    made = {
        "first": Recorded("first"),
        "second": Recorded("second", value=-0.2),
        "third": Recorded("third", refusal="it needs sheet music"),
    }
    use(monkeypatch, {name: record.part for name, record in made.items()})
    return made


def test_finished_parts_are_read_and_the_others_are_run(recorded, tmp_path):
    options = {"out": tmp_path / "out", "workers": 1, "progress": False}
    recorded["second"].stops = True
    with pytest.warns(UserWarning, match="second: there is no more paper"):
        stopped = hm.debate(frame(), **options)
    assert stopped.stopped == {"second": "stopped: there is no more paper"}
    assert [judged.claim.verdict for judged in stopped.claims] == [SURVIVES]
    recorded["second"].stops = False
    whole = hm.debate(frame(), **options)
    assert not whole.stopped
    assert (recorded["first"].runs, recorded["second"].runs, recorded["third"].runs) == (1, 2, 0)
    assert [judged.claim.verdict for judged in whole.claims] == [SURVIVES, FALLS]
    page = (tmp_path / "out" / "result.md").read_text(encoding="utf-8")
    hm.debate(frame(), **options)
    assert recorded["second"].runs == 2
    assert (tmp_path / "out" / "result.md").read_text(encoding="utf-8") == page


def test_a_resumed_debate_says_at_once_what_is_finished(recorded, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(debates, "note", said.append)
    options = {"out": tmp_path / "out", "workers": 1, "progress": False}
    hm.debate(frame(), parts=["first"], **options)
    assert not any("Resuming" in line for line in said)
    said.clear()
    hm.debate(frame(), **options)
    assert said[0] == f"Resuming {tmp_path / 'out'}: 1 of 2 parts is finished (first)."


def test_the_page_begins_with_the_tally_and_keeps_what_has_not_learned_closed(recorded, tmp_path):
    hm.debate(frame(), out=tmp_path / "out", workers=1, progress=False)
    page = (tmp_path / "out" / "result.html").read_text(encoding="utf-8")
    assert "<p><b>2 claims: 1 survives, 1 does not, 0 undecided.</b></p>" in page
    made = result.page_of(hm.debate(frame(), out=tmp_path / "out", workers=1, progress=False))
    marked = render.page(replace(made, not_learned="† Not learned: a."))
    assert "</summary><p>† Not learned: a.</p></details>" in marked
    assert '<td data-head="the paper found">So it was (p. 1).</td>' in page
    found = f"So it was, {'and so it was again, ' * 3}(p. 1)."
    sections = [replace(made.sections[0], lines=[["it", "It is.", "survives", "+0.5", found]])]
    assert f'<td class="said" data-head="the paper found">{found}</td>' in render.page(
        replace(made, sections=sections)
    )


def test_too_few_texts_with_an_impermissible_word_leave_pruthi_out_before_it_trains():
    subject, notes = debates._subject(hm.load(frame(200), progress=False), "awful")
    assert (subject.forbidden, len(notes)) == ("awful", 1)
    texts = frame(200)
    texts.loc[0, "text"] = "odd " + texts.loc[0, "text"]
    subject, notes = debates._subject(hm.load(texts, progress=False), "odd")
    assert subject.forbidden is None
    assert "deception are left out" in notes[-1]
    (refusal,) = [part.refusal(subject) for name, part in ALL.items() if name == "pruthi"]
    assert "too few test texts have an impermissible word (odd): " in refusal
    assert "and it needs 20; name words with --forbidden" in refusal
    assert parts._questions(subject) == parts.QUESTIONS


def test_help_names_every_part(heedmap):
    told = "".join(heedmap("debate", "--help").out.replace("│", "").split())
    assert all(name in told for name in ALL)


def test_the_page_has_every_part_with_its_state_and_every_claim_with_its_source(recorded, tmp_path):
    made = hm.debate(frame(), out=tmp_path / "out", parts=["first"], workers=1, progress=False)
    assert recorded["second"].runs == 0
    page = (tmp_path / "out" / "result.md").read_text(encoding="utf-8")
    assert "[First (1999)](<first/result.html>)" in page
    assert "left out by --parts" in page
    assert "does not apply: it needs sheet music" in page
    assert "So it was (p. 1)." in page
    assert "+0.200 [+0.100, +0.300]" in page
    assert "Impermissible words, chosen, because none were named" in page
    row = made.to_dataframe().iloc[0]
    assert (row["part"], row["verdict"], row["found"]) == ("first", SURVIVES, "So it was (p. 1).")
    assert (row["value"], row["low"], row["high"], row["margin"]) == pytest.approx(
        (0.2, 0.1, 0.3, 0.2)
    )
    elsewhere = made.save(tmp_path / "sub.html")
    assert 'href="out/first/result.html"' in elsewhere.read_text(encoding="utf-8")
    assert repr(made).startswith("<Debate on frame") or "1 claims" in repr(made)
    with pytest.raises(InputError, match=r"ends in \.html"):
        made.save(tmp_path / "sub.pdf")


def test_the_time_is_said_before_anything_is_trained(recorded, tmp_path, heedmap, csv_file):
    path = tmp_path / "mine.csv"
    frame().to_csv(path, index=False)
    said = heedmap("debate", "--data", path, "--out", tmp_path / "o", "--workers", "1")
    assert said.code == 0, said.err
    assert "first: about 60 s. Is it?" in said.err
    assert "All will take about 2 min with 1 worker" in said.err
    assert "the forecast was 2 min" in said.err
    assert "survives" in said.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": ["mine"]}, "--parts: expected some of first, second, third, got mine"),
        ({"budget": "huge"}, "budget: expected quick or paper, got 'huge'"),
        ({"parts": ["third"]}, r"no part applies: does not apply|no part applies: it needs sheet"),
        ({"forbidden": "xylophone"}, "--forbidden: expected words of the texts"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_nothing_is_written(
    recorded, options, message, tmp_path
):
    with pytest.raises(InputError, match=message):
        hm.debate(frame(), out=tmp_path / "out", progress=False, **options)
    assert not (tmp_path / "out").exists()


def test_other_texts_are_refused_in_a_folder_that_has_some(recorded, tmp_path):
    hm.debate(frame(), out=tmp_path / "out", workers=1, progress=False)
    with pytest.raises(InputError, match=r"other settings .*or delete the folder"):
        hm.debate(frame(seed=1), out=tmp_path / "out", workers=1, progress=False)


def test_parts_of_single_texts_do_not_apply_to_pairs_and_say_so():
    subject = DebateInput(small_pairs(), None, None, {"sentences": "s", "forbidden": "f"})
    refusals = {name: debates._refusal(part, subject) for name, part in ALL.items()}
    assert (refusals.pop("audit"), refusals.pop("vashishth")) == ("", "")
    assert set(refusals.values()) == {"it reads single texts, and these are pairs"}


def test_too_few_texts_and_missing_labels_are_reasons():
    few = DebateInput(small_corpus(size=24))
    assert debates._refusal(ALL["audit"], few).startswith("too few texts:")
    corpus = small_corpus(size=400)
    labels = np.zeros_like(corpus.splits["train"].labels)
    one = replace(
        corpus, splits={**corpus.splits, "train": replace(corpus.splits["train"], labels=labels)}
    )
    assert debates._refusal(ALL["audit"], DebateInput(one)).startswith(
        "no training text has the label"
    )


def test_without_words_or_sentences_their_parts_say_why():
    subject = DebateInput(
        small_corpus(size=400), None, None, {"sentences": "no", "forbidden": "none"}
    )
    assert debates._refusal(ALL["pruthi"], subject) == "none"
    assert debates._refusal(ALL["serrano-smith"], subject).endswith("cannot be read here: no")
    assert debates._refusal(ALL["drozdyuk"], subject) == ""
    assert debates._refusal(ALL["vashishth"], subject) == ""


@pytest.mark.parametrize("classes", [2, 3])
def test_the_words_that_give_a_class_away_are_chosen(classes):
    corpus = hm.load(frame(300, classes), progress=False)
    telling = most_telling(corpus)
    assert {"awful", "lovely", "strange"} & {*telling} == {
        *["awful", "lovely", "strange"][:classes]
    }
    assert all("," not in word and any(c.isalnum() for c in word) for word in telling)


def test_a_claims_word_follows_the_numbers_and_the_least_of_them_decides():
    def claim(*numbers):
        checks = [
            Check("line", apart((n.low, n.high), n.edge), (), n)
            for n in (Estimate(str(i), *number) for i, number in enumerate(numbers))
        ]
        return judged("c", checks, Learned({}))

    assert claim((0.5, 0.4, 0.6), (0.2, 0.1, 0.3)).verdict == SURVIVES
    assert claim((0.5, 0.4, 0.6), (0.2, 0.1, 0.3)).decisive.of == "1"
    assert claim((0.5, 0.4, 0.6), (0.05, -0.1, 0.3)).verdict == UNDECIDED
    assert claim((0.5, 0.4, 0.6), (-0.2, -0.3, -0.1)).verdict == FALLS
    assert claim((0.5, 0.4, 0.6, 0.55), (0.2, 0.1, 0.3)).decisive.of == "0"
    assert claim().decisive is None


def test_numbers_of_models_that_have_not_learned_are_counted_beside_the_one_that_decides():
    learned = Learned({"poor": {0: [accuracy(0.5, 0.5, 100)]}})
    number = Estimate("good", 0.5, 0.4, 0.6)
    sides = [Check("good", apart((0.4, 0.6)), ("good",), number)]
    assert result._shown(judged("c", sides, learned)) == number.text
    claim = judged("c", [*sides, Check("poor", apart((0.4, 0.6)), ("poor",), number)], learned)
    assert claim.verdict == UNDECIDED
    assert "1 of 2 numbers not counted: a model that has not learned" in result._shown(claim)
    whole = learned.judged(replace(claim, numbers=("l", "m"), decisive=number), "poor")
    assert result._shown(whole) == "nothing that counts: see below"
    assert all(line.endswith("not learned: poor, not counted †") for line in whole.numbers)


def test_a_claim_that_one_is_enough_for_falls_only_if_every_one_fails():
    holds, neither, fails = Side(True, False), Side(False, False), Side(False, True)
    assert verdict_of_any([fails, neither, holds]) == SURVIVES
    assert verdict_of_any([fails, neither]) == UNDECIDED
    assert verdict_of_any([fails, fails]) == FALLS
    assert verdict_of_any([]) == UNDECIDED


@pytest.mark.parametrize(
    ("holding", "failing", "word"),
    [
        (8, 0, SURVIVES), (5, 3, SURVIVES), (5, 0, SURVIVES), (4, 4, UNDECIDED), (4, 0, UNDECIDED),
        (1, 0, UNDECIDED), (1, 6, FALLS), (3, 5, FALLS), (0, 8, FALLS), (0, 4, UNDECIDED),
    ],
)  # fmt: skip
def test_a_claim_about_what_becomes_of_models_is_decided_by_more_than_half_of_eight(
    holding, failing, word
):
    sides = [Side(True, False)] * holding + [Side(False, True)] * failing
    assert verdict_of_most([*sides, *[Side(False, False)] * (8 - len(sides))]) == word
    assert verdict_of_most([]) == UNDECIDED


def test_more_tries_make_wider_intervals():
    assert level_of(1) == level_of(0) == pytest.approx(0.95)
    assert level_of(10) == pytest.approx(0.995)


def line(seeds, n, std, half):
    empty = dict.fromkeys(Line.__dataclass_fields__, float("nan"))
    return Line(**{
        **empty, "ours": 0.3, "ours_std": std, "seeds": seeds, "n": n,
        "next_low": 0.3 - half, "next_high": 0.3 + half,
    })  # fmt: skip


def test_the_interval_of_one_seed_is_students_over_texts_and_more_seeds_add_their_spread():
    from scipy import stats

    values = np.random.default_rng(0).normal(0.3, 0.2, 40)
    values += 0.3 - values.mean()
    low, high = interval(line(1, 40, float(values.std()), np.nan), 0.95)
    expected = stats.t.interval(0.95, 39, 0.3, stats.sem(values))
    assert (low, high) == pytest.approx(expected)
    # Without any spread over texts the interval is that of the seeds' mean.
    seeds = np.array([0.2, 0.3, 0.4])
    half = stats.t.ppf(0.975, 2) * seeds.std(ddof=1) * np.sqrt(1 + 1 / 3)
    low, high = interval(line(3, 3000, 0.0, half), 0.95)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 2, 0.3, stats.sem(seeds)))


def test_every_paper_with_a_debate_file_is_a_part_with_a_smaller_quick_budget():
    assert {*TINY} == {*ALL}
    assert [*ALL][:2] == ["audit", "retrain"]
    for part in ALL.values():
        assert part.options("quick")
        assert part.options("paper") == {}
        assert part.question.endswith("?")


@pytest.mark.exhaustive
def test_every_paper_is_asked_and_every_claim_stands_beside_what_the_paper_found(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(parts, "QUESTIONS", ("transfer",))
    use(monkeypatch, {name: replace(part, quick=TINY[name]) for name, part in ALL.items()})
    made = hm.debate(frame(), out=tmp_path / "made", workers=1, progress=False)
    assert {state.text for state in made.states.values()} == {"finished"}
    table = made.to_dataframe()
    assert set(table["part"]) == set(TINY) - {"audit", "retrain"}
    assert set(table["verdict"]) <= {SURVIVES, FALLS, UNDECIDED}
    assert (table["found"] != "").mean() > 0.9
    for page in table["page"]:
        assert (made.folder / page).exists()
