"""Audits with a budget from end to end: stopped, repeated, resumed, short of time, compared."""

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import watched
from tiny_transformers import tiny_model, tiny_tokenizer
from wording import refused

import heedmap as hm
from heedmap.experiments import intervals, reading
from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.drawing import LOOKS, stops
from heedmap.experiments.rates import packaged_rates
from heedmap.runs import budget
from heedmap.terminal.output import Note

FEW = {"permutations": 3, "progress": False}
BEFORE = 1e-9  # minutes that are over at once
TEXTS = 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tiny_model("bert").save_pretrained(folder)
    tiny_tokenizer("bert").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "films.jsonl"
    rng = np.random.default_rng(0)
    words = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]
    rows = [
        {"text": " ".join(rng.choice(words, n)), "label": int(i % 3 == 0), "id": f"t{i}"}
        for i, n in enumerate([1, 2, *rng.integers(3, 9, TEXTS - 2)])
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def opened(model, texts, tmp_path):
    def open_in(name, out=True):
        return hm.open_model(model, texts, out=tmp_path / name if out else None, progress=False)

    return open_in


def files(folder, pattern="**/*"):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def drawn(model, texts, tmp_path_factory):
    """An audit of eight drawn texts of which everything is asked, in its folder."""
    run = hm.open_model(model, texts, out=tmp_path_factory.mktemp("drawn") / "run", progress=False)
    return hm.audit(run, drawn=8, **FEW)


def test_drawn_texts_are_of_both_classes_and_asked_everything(drawn):
    labels = drawn["instances"]["label"]
    assert labels.value_counts().tolist() == [4, 4]
    assert {"leave_one_out", "baselines", "scan", "adversary"} <= {*drawn.tables}
    assert all(len(drawn[name]) == 8 for name in ("highlights", "permutation", "leave_one_out"))
    assert drawn.settings.audit.unasked == ()
    assert "8 of 20 test texts" in (drawn.run.folder / "report.html").read_text()


def test_more_texts_than_there_are_is_said_and_the_card_says_all(opened):
    with pytest.warns(Note, match=f"--drawn {TEXTS + 1}: expected at most {TEXTS},"):
        audit = hm.audit(opened("all"), drawn=TEXTS + 1, **FEW)
    assert audit.settings.audit.drawn == TEXTS
    page = (audit.run.folder / "report.html").read_text()
    assert f"all {TEXTS} test texts" in page
    assert "asked for" not in page


@pytest.mark.parametrize(
    ("minutes", "how"),
    [
        (None, "draw them with a larger --drawn"),
        (0.5, "draw them with --drawn, since --minutes reads"),
    ],
)
def test_where_more_texts_are_advised_it_is_said_how_they_are_drawn(drawn, minutes, how):
    audit_settings = drawn.settings.audit.model_copy(update={"minutes": minutes})
    certain = drawn.about["budget"] | {"certain": True, "of": 20, "unasked": {}}
    # Without the skill, which is in doubt and would be the answer.
    findings = [finding for finding in drawn.findings if finding.key != "skill"]
    audit = replace(
        drawn,
        about=drawn.about | {"budget": certain},
        findings=findings,
        settings=drawn.settings.model_copy(update={"audit": audit_settings}),
    )
    said = bottom_line(audit, packaged_rates()).instead
    assert said.startswith("audit more texts, 30 or more of each predicted class")
    assert how in said
    whole = replace(audit, about=audit.about | {"budget": certain | {"of": 8}})
    assert "--drawn" not in bottom_line(whole, packaged_rates()).instead


@pytest.mark.exhaustive
def test_half_of_the_bar_is_for_the_drawn_texts_and_none_is_full_before_the_end(opened):
    places = []
    with watched(move=lambda done, text: places.append((done, text))):
        hm.audit(opened("run", out=False), drawn=TEXTS, permutations=3)
    drawing = [done for done, text in places if f"of at most {TEXTS}" in text]
    asking = [done for done, text in places if "adversary" in text or "scan" in text]
    assert max(drawing) <= 0.5 + 1e-9
    assert 0.5 - 1e-9 <= min(asking) <= max(asking) < 1
    assert len({*drawing}) > 3  # it moves while texts are drawn


def test_the_tables_are_those_that_the_questions_make_of_the_same_texts(drawn):
    from heedmap.experiments.context import AuditContext
    from heedmap.experiments.registry import registered
    from heedmap.runs.audit_defaults import audited_split

    split = audited_split(drawn.run.corpus, drawn.settings.audit)
    context = AuditContext(drawn.run.model, split, drawn.settings.audit, registered())
    for name in ("instances", "permutation", "leave_one_out", "baselines"):
        ours, plain = drawn[name], context.table(name).to_pandas()
        for column in ours.columns:
            if ours[column].dtype.kind == "f":
                np.testing.assert_allclose(ours[column], plain[column], atol=1e-4, err_msg=column)
    # Words of all texts may stand for a text's others, so only what needs no other text is the same.
    ours, plain = drawn["highlights"], context.table("highlights").to_pandas()
    for column in ("gone_map", "gone_random", "alone_map", "highlighted"):
        np.testing.assert_allclose(ours[column], plain[column], atol=1e-4, err_msg=column)


def test_a_time_that_is_over_leaves_one_text_and_no_other_question(opened, tmp_path):
    audit = hm.audit(opened("run"), minutes=BEFORE, **FEW)
    assert len(audit["instances"]) == 1
    assert {*audit.tables} == {*reading.KEPT}
    assert {"leave_one_out", "baselines", "agreement"} <= {*audit.settings.audit.unasked}
    line = audit.bottom_line
    assert line.answer == "cannot tell"
    page = (tmp_path / "run" / "report.html").read_text()
    assert "1 of 20 test texts" in page
    assert "More time buys a bottom line of 16 texts" in page  # fewer are too few for an answer
    assert "the questions that were left out: " in page
    assert hm.open_audit(tmp_path / "run").bottom_line == line


@pytest.mark.exhaustive
def test_more_minutes_read_on_from_there_and_end_as_at_once(opened, tmp_path):
    hm.audit(opened("run"), minutes=BEFORE, **FEW)
    part = tmp_path / "run" / "tables" / "drawn" / "00000-00001" / "highlights.parquet"
    written = part.stat().st_mtime_ns
    audit = hm.audit(tmp_path / "run", minutes=50, **FEW)
    texts = audit.settings.audit.drawn
    assert texts in stops(TEXTS)
    assert texts > 1
    assert part.stat().st_mtime_ns == written
    at_once = hm.audit(opened("at_once"), drawn=texts, **FEW)
    pattern = "tables/*.parquet"
    assert files(tmp_path / "run", pattern) == files(tmp_path / "at_once", pattern)
    assert at_once.bottom_line == audit.bottom_line


@pytest.mark.slow
def test_the_same_command_again_writes_the_same_bytes(opened, tmp_path):
    hm.audit(opened("run"), minutes=BEFORE, **FEW)
    before = files(tmp_path / "run")
    hm.audit(tmp_path / "run", minutes=BEFORE, **FEW)
    assert files(tmp_path / "run") == before


@pytest.mark.slow
def test_an_audit_that_was_stopped_while_it_drew_goes_on(opened, tmp_path, drawn, monkeypatch):
    ask, asked = reading.Reader._ask, []

    def stop_at_the_third(self, start, end):
        asked.append(end)
        if len(asked) == 3:
            raise KeyboardInterrupt
        ask(self, start, end)

    run = opened("run")
    monkeypatch.setattr(reading.Reader, "_ask", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        hm.audit(run, drawn=8, **FEW)
    monkeypatch.undo()
    hm.audit(tmp_path / "run", drawn=8, **FEW)
    assert files(tmp_path / "run", "tables/*.parquet") == files(
        drawn.run.folder, "tables/*.parquet"
    )


@pytest.mark.slow
def test_without_a_folder_the_tables_are_the_same(opened, drawn):
    audit = hm.audit(opened("run", out=False), drawn=8, **FEW)
    assert {*audit.tables} == {*drawn.tables}
    for name, table in audit.tables.items():
        assert repr(table.to_pylist()) == repr(drawn.tables[name].to_pylist()), name


def test_work_is_counted_by_hand(opened):
    run = opened("run", out=False)
    split = run.corpus.splits["test"]
    embedding = run.model.model.get_input_embeddings().weight.numel()
    weights = sum(p.numel() for p in run.model.model.parameters()) - embedding
    sizes = [len(run.model.tokenizer(" ".join(text))["input_ids"]) for text in split.tokens]
    assert budget._work(run.model, split) == sum(weights * n * (n + 150) for n in sizes)


def test_a_long_audit_of_a_transformer_gets_the_default_time(opened, monkeypatch):
    run = opened("run")
    assert hm.audit(run, **FEW, instances=4).settings.audit.minutes is None
    assert hm.audit(run, **FEW, instances=18, overwrite=True).settings.audit.minutes is None
    monkeypatch.setattr(budget, "MINUTES", BEFORE)
    monkeypatch.setattr(budget, "MOST_WORK", 0)
    short = hm.audit(run, **FEW, instances=18, seed=1, overwrite=True)
    assert short.settings.audit.minutes == BEFORE
    monkeypatch.undo()
    assert hm.audit(run, **FEW, instances=18, seed=1).settings.audit == short.settings.audit
    whole = hm.audit(run, **FEW, instances=18, seed=1, minutes="all", overwrite=True)
    assert whole.settings.audit.minutes is None
    assert len(whole["leave_one_out"]) == 18


@pytest.mark.parametrize("minutes", [0, -1, "soon", float("nan"), float("inf"), True, ""])
def test_minutes_are_a_number_above_zero(opened, minutes):
    with refused("minutes", "above 0"):
        hm.audit(opened("run", out=False), minutes=minutes, **FEW)


def test_a_number_of_texts_is_no_time(opened):
    with refused("drawn", "minutes"):
        hm.audit(opened("run", out=False), minutes=3, drawn=4, **FEW)
    with refused("drawn"):
        hm.audit(opened("run", out=False), drawn=0, **FEW)


def test_intervals_hold_at_every_look(drawn):
    finding = next(f for f in drawn.findings if f.key == "skill")
    correct = (drawn["instances"]["label"] == drawn["instances"]["predicted"]).to_numpy(float)
    wide = intervals.of_share(correct, tail=intervals.TAIL / LOOKS)
    assert (finding.low, finding.high) == pytest.approx(wide)
    narrow = intervals.of_share(correct)
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


def test_a_comparison_says_which_run_drew_its_texts(opened, drawn):
    short = hm.audit(opened("run"), minutes=BEFORE, **FEW)
    notes = hm.compare([drawn, short]).notes
    assert any("A is of 8 texts" in note for note in notes)
    assert any("B is of 1 text" in note and "not asked" in note for note in notes)
    assert not any("different settings" in note for note in notes)
