"""Long work says where it is, and the results do not depend on who looks."""

import logging
import re
import time

import pytest
from conftest import QUICK, contents, small_corpus, watched

import heedmap as hm
from heedmap.terminal import displays, progress
from heedmap.terminal.displays import LOGGER, Display, Lines, NotebookBar, TerminalBar, display_for
from heedmap.terminal.progress import (
    at,
    in_job,
    plan,
    portion,
    shown_by,
    step,
    track,
    working,
)

SMALL = {"encoder": "average", "embedding_size": 8, "hidden_size": 8, "min_df": 1, "epochs": 2}


def moves(work):
    seen = []
    with watched(lambda done, text: seen.append((round(done, 6), text))):
        work()
    return seen


def test_a_loop_moves_the_bar_by_its_items_and_what_is_in_them():
    def work():
        for _ in track("ab"):
            for _ in track("cd"):
                pass

    assert [done for done, _ in dict.fromkeys(moves(work))] == [0, 0.25, 0.5, 0.75, 1]


def test_a_part_that_has_the_name_of_the_work_does_not_repeat_it():
    seen = []

    class Texts(Display):
        def move(self, done, text, remaining):
            seen.append(text)

    with shown_by(Texts(), "reading"), working("reading"):
        at(1, 2)
        with working("words"):
            pass
    assert {*seen} == {"", "words"}


def test_items_that_take_longer_move_it_further():
    seen = moves(lambda: list(track("ab", weights=(3, 1))))
    assert [done for done, _ in dict.fromkeys(seen)] == [0, 0.75, 1]


def test_a_planned_step_takes_its_forecast_even_within_another():
    def work():
        plan({"short": 1, "long": 3})
        with step("long"):
            at(1, 3)
            with step("short"):
                pass
            at(2, 3)

    assert list(dict.fromkeys(done for done, _ in moves(work))) == [0, 0.25, 0.5, 0.75, 1]


def test_portions_leave_nothing_to_what_lies_between_them():
    def work():
        with portion(0.5):
            at(1, 1)
        list(track("ab"))
        with portion(0.5):
            at(1, 2)

    assert list(dict.fromkeys(done for done, _ in moves(work))) == [0, 0.5, 0.75, 1]


def test_a_bar_never_goes_back_and_a_loop_that_is_left_early_counts_for_nothing():
    def work():
        with portion(0.5):
            at(3, 4)
            at(1, 4)
        next(iter(track("abc")))
        at(3, 4)

    done = [share for share, _ in moves(work)]
    assert done == sorted(done)
    assert done[-1] == 0.75


def test_the_text_says_what_is_running_from_the_outside_inwards():
    def work():
        with in_job("lstm-0"), working("training"):
            at(1, 2, "epoch 1 of 2")

    assert "lstm-0: training, epoch 1 of 2" in [text for _, text in moves(work)]


def test_without_a_display_work_is_just_done():
    with working("nothing", visible=False), step("one"), portion(0.5), in_job("a"):
        at(1, 2)
    assert list(track("ab")) == ["a", "b"]


def test_the_time_left_is_the_forecast_at_first_and_then_the_pace(monkeypatch):
    now, left = [0.0], []
    monkeypatch.setattr("heedmap.terminal.progress.time.monotonic", lambda: now[0])

    class Clock(Display):
        def move(self, done, text, seconds):
            left.append(seconds)

    with shown_by(Clock()):
        plan({"a": 50.0, "b": 50.0}, 100.0)
        with step("a"):
            assert left[-1] == pytest.approx(100)
            now[0] = 100.0  # twice as slow as the forecast
            at(1, 1)
            assert 80 < left[-1] < 100


def test_a_log_has_a_line_for_each_step_with_the_time_so_far(caplog):
    with caplog.at_level(logging.INFO, LOGGER.name), working("audit"):
        plan({"leave_one_out": 1, "adversary": 1})
        with step("leave_one_out"), in_job("one"), step("silent"):
            pass
        with step("adversary"):
            pass
    assert caplog.messages == [
        "audit: leave one out (1 of 2), 0 s so far",
        "audit: adversary (2 of 2), 0 s so far",
    ]


def test_steps_within_a_step_that_nobody_planned_write_no_line_of_their_own(caplog, monkeypatch):
    now = [0.0]
    for module in (displays, progress):
        monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with caplog.at_level(logging.INFO, LOGGER.name), working("retrain"):
        plan({"instances": 1, "adversary_by_model": 1})
        with step("instances"):
            pass
        with step("adversary_by_model"):
            for _ in track(
                range(12)
            ):  # a model each, whose steps are named as planned ones that are over
                with step("adversary"), step("instances"):
                    now[0] += 1
        with step("report"):
            pass
    lines = [re.sub(", [0-9]+ s left$", "", line) for line in caplog.messages]
    assert lines == [
        "retrain: instances (1 of 2), 0 s so far",
        "retrain: adversary by model (2 of 2), 0 s so far",
        "retrain: adversary by model: adversary, 92%, 10 s so far",
        "retrain: report, 12 s so far",
    ]


def test_a_log_hears_of_work_that_moves_nothing(caplog, monkeypatch):
    monkeypatch.setattr(displays, "QUIET_FOR", 0.1)
    with caplog.at_level(logging.INFO, LOGGER.name), working("opening the model"):
        time.sleep(0.3)
    assert caplog.messages
    assert set(caplog.messages) == {"opening the model: 0 s so far"}
    count = len(caplog.messages)
    time.sleep(0.2)
    assert len(caplog.messages) == count, "nothing is said after the end"


@pytest.mark.parametrize(
    ("step", "said"),
    [("slow", "audit: slow, 50%, 11 s so far, "), ("", "audit: 50%, 11 s so far, ")],
)
def test_a_log_hears_of_a_long_step_every_ten_seconds(caplog, monkeypatch, step, said):
    now = [0.0]
    monkeypatch.setattr(displays.time, "monotonic", lambda: now[0])
    with caplog.at_level(logging.INFO, LOGGER.name), working("audit"):
        at(1, 4, step)
        now[0] = 11.0
        at(2, 4, step)
        at(3, 4, step)
    (line,) = caplog.messages
    assert line.startswith(said)


def test_the_logging_decides_what_is_shown(monkeypatch):
    monkeypatch.setattr(displays, "is_terminal", lambda: True)
    bar = display_for("work")
    bar.end()
    assert type(bar) is TerminalBar
    monkeypatch.setattr(LOGGER, "level", logging.ERROR)
    LOGGER.manager._clear_cache()
    assert type(display_for("work")) is Display
    monkeypatch.setattr(LOGGER, "level", logging.INFO)
    LOGGER.manager._clear_cache()
    lines = display_for("work")
    assert type(lines) is Lines
    lines.end()
    monkeypatch.undo()
    LOGGER.manager._clear_cache()


def test_python_says_nothing_where_there_is_no_terminal(capsys):
    hm.train(small_corpus(), **SMALL)
    assert capsys.readouterr() == ("", "")


def test_a_notebooks_bar_escapes_what_it_shows(monkeypatch):
    pytest.importorskip("IPython")
    shown = []
    monkeypatch.setattr(NotebookBar, "_show", lambda self, plain, html: shown.append(html))
    bar = NotebookBar("training")
    bar.move(0.5, "<b>", 3.0)
    bar.end()
    assert shown == [
        '<progress value="0.5000"></progress> training: &lt;b&gt; &nbsp; 3 s left',
        "",
    ]


def test_the_results_are_the_same_bytes_whoever_looks(tmp_path):
    for name in ("seen", "unseen"):
        with watched() if name == "seen" else shown_by(Display()):
            run = hm.train(small_corpus(), out=tmp_path / name, **SMALL)
    hm.train(small_corpus(), out=tmp_path / "off", progress=False, **SMALL)
    assert run.training is not None
    assert (
        contents(tmp_path / "seen") == contents(tmp_path / "unseen") == contents(tmp_path / "off")
    )


@pytest.mark.slow
def test_a_command_without_a_terminal_writes_a_line_per_step_unless_it_is_quiet(
    heedmap, csv_file, tmp_path
):
    loud = heedmap("audit", "--data", csv_file, "--out", tmp_path / "loud", *QUICK)
    lines = loud.err.splitlines()
    assert all(
        re.match(r"\d\d:\d\d:\d\d (training|audit): .*, \d+ s so far(, .* left)?$", x)
        for x in lines
    )
    assert any("training: epoch 1 of 1, loss per step " in line for line in lines)
    count = len([line for line in lines if " audit: " in line])
    assert f" audit: report ({count} of {count})" in lines[-1]
    quiet = heedmap("audit", "--data", csv_file, "--out", tmp_path / "mute", *QUICK, "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out.replace("mute", "loud") == loud.out
    assert contents(tmp_path / "mute" / "tables") == contents(tmp_path / "loud" / "tables")
