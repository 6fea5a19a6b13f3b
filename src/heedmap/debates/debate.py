"""Run the whole debate on a user's own texts: what it takes, the parts, and one page.

    OUT/settings.toml      texts, budget and impermissible words
    OUT/PART/              a part, as its paper's `reproduce` makes it
    OUT/result.*           each paper's claim beside what these texts show

A finished part is read, and a stopped one goes on.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedmap.data.corpus import Corpus
from heedmap.data.in_memory import Source, Values
from heedmap.data.load import in_sentences, load
from heedmap.debates.forbidden import PER_CLASS, most_telling, with_words
from heedmap.debates.parts import debate_parts
from heedmap.debates.result import ABOUT_FILES, Debate, DebateSettings, State, page_of
from heedmap.errors import InputError
from heedmap.keywords import takes
from heedmap.papers.kit.debate_part import Budget, DebateInput, Part
from heedmap.papers.kit.parts import left_out, reserved, sizes, write_about
from heedmap.papers.kit.render import write
from heedmap.papers.kit.timing import Timer
from heedmap.report.wording import plural
from heedmap.runs.run_paths import DefaultPlace, Out
from heedmap.settings.base import OptionSubset
from heedmap.settings.data import DataSettings
from heedmap.terminal.displays import span
from heedmap.terminal.output import remark, some_of
from heedmap.terminal.progress import note, portion, working
from heedmap.training.remote import takes_executor
from heedmap.training.shards import (
    MissingJobs,
    current_shard,
    end_shard,
    independent,
    is_divided,
)
from heedmap.training.sweep import processes

READING = OptionSubset(DataSettings, "classes", "tokenizer")
"""How the texts are read: some parts read words, one sentences."""
# Parts are not replaced: those of other texts would stand beside the new ones.
REMEDY = "choose another --out, or delete the folder"
FEWEST = {"train": 20, "dev": 5, "test": 20}
"""Texts of fewer train nothing, and leave every claim undecided."""
FEWEST_WITH_WORDS = 20
"""Test texts with an impermissible word: where the words are hidden is known of these alone."""


@takes_executor
@takes(READING)
def debate(
    data: Source | Corpus,
    labels: Values | None = None,
    *,
    queries: Values | None = None,
    budget: Budget = "quick",
    parts: Sequence[str] = (),
    forbidden: str | None = None,
    out: Out | None = None,
    workers: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> Debate:
    """Ask every question of every paper of a user's own texts. Resumes a stopped call.

    Args:
        data: as for `heedmap.load`, or a corpus from there.
        labels, queries: of a list of texts, one for each.
        budget: `quick` for small trainings, some minutes on a CPU; `paper` for the sizes that
            `heedmap reproduce` takes by default, which take hours.
        parts: what to run, by name; all that apply by default. What earlier calls finished stays on the page.
        forbidden: impermissible words: "he,she,...", or a file of them; by default those that speak most for
            each class in the training texts.
        {options}
        out: the folder; by default runs/debate-DATA, or the first free one.
        workers: processes that train, each of one thread; None for one per core. No number depends on it.
        progress: False to show no progress bar.

    Raises:
        InputError: an unknown part or budget, texts of which no part applies, words that occur nowhere, another
            debate in `out`, or another process that writes there.
    """
    if budget not in ("quick", "paper"):
        raise InputError(f"budget: expected quick or paper, got {budget!r}")
    wanted = _checked(parts)
    processes(workers)
    if isinstance(data, Corpus):
        if settings := {name: value for name, value in settings.items() if value is not None}:
            raise InputError(
                f"{', '.join(settings)}: not options of a corpus, which is read already"
            )
        corpus = data
    else:
        corpus = load(data, labels, queries=queries, progress=progress, **settings)
    with working("debate", progress):
        with portion(0.0, "reading"):  # which takes nothing of the bar
            subject, notes = _subject(corpus, forbidden)
        refusals = {part.name: _refusal(part, subject) for part in debate_parts().values()}
        if all(refusals[name] for name in wanted):
            raise InputError(f"{corpus.name}: no part applies: {_listed(refusals, wanted)}")
        debate_settings = DebateSettings.of(
            fingerprint=corpus.fingerprint(),
            data=corpus.settings,
            budget=budget,
            forbidden=subject.forbidden,
        )
        place = DefaultPlace(Path("runs") / f"debate-{corpus.name}") if out is None else out
        with reserved(place, debate_settings, files=ABOUT_FILES, remedy=REMEDY) as folder:
            write_about(folder, corpus.name, [sizes(corpus), *left_out(corpus), *notes])
            return _run(folder, subject, debate_settings, wanted, refusals, workers)


def _checked(parts: Sequence[str]) -> list[str]:
    """Return the parts to run, in the order of the debate.

    Raises:
        InputError: an unknown part.
    """
    if unknown := [name for name in parts if name not in debate_parts()]:
        raise InputError(f"--parts: expected some of {', '.join(debate_parts())}, got {unknown[0]}")
    return [name for name in debate_parts() if name in parts or not parts]


def _subject(corpus: Corpus, forbidden: str | None) -> tuple[DebateInput, list[str]]:
    """Return what the debate is about, and notes on the impermissible words."""
    missing, notes = {}, []
    sentences: Corpus | None = None
    try:
        sentences = in_sentences(corpus)
    except (InputError, OSError) as error:
        missing["sentences"] = str(error)
    words = forbidden
    if words is None:
        try:
            words = ",".join(most_telling(corpus))
            origin = (
                f"chosen, because none were named: of each class at most {PER_CLASS}, those with the largest "
                "log-odds (an L1 regression gives most words none)"
            )
        except InputError as error:
            missing["forbidden"] = f"no impermissible words were named or could be chosen ({error})"
    else:
        origin = "named by the user"
    if words is not None:
        count, total = with_words(corpus, words)
        listed = words.replace(",", ", ")
        notes.append(
            f"Impermissible words, {origin}: {listed}. Test texts with one: {count} of {total}."
        )
        if count < FEWEST_WITH_WORDS:
            missing["forbidden"] = (
                f"too few test texts have an impermissible word ({listed}): {count} of {total}, and it needs "
                f"{FEWEST_WITH_WORDS}; name words with --forbidden, or give more texts"
            )
            notes.append("Too few: Pruthi et al.'s part and deception are left out.")
            words = None
    return DebateInput(corpus, sentences, words, missing), notes


def _refusal(part: Part, subject: DebateInput) -> str:
    """Return why a part does not apply, or nothing."""
    for name, fewest in FEWEST.items():
        if (count := len(subject.corpus.splits[name])) < fewest:
            return f"too few texts: {count} in {name}, and it needs {fewest}"
    labels = {*subject.corpus.splits["train"].labels.tolist()}
    classes = subject.corpus.classes
    if absent := [name for index, name in enumerate(classes) if index not in labels]:
        return f"no training text has the label {some_of(absent)}"
    return part.refusal(subject)


def _run(
    folder: Path,
    subject: DebateInput,
    settings: DebateSettings,
    wanted: Sequence[str],
    refusals: Mapping[str, str],
    workers: int | None,
) -> Debate:
    parts = debate_parts()
    states = {
        name: (
            State(None, f"does not apply: {refusals[name]}")
            if refusals[name]
            else State(part.read(part.place(folder)))
        )
        for name, part in parts.items()
    }
    # Where shards finished a part's jobs, its numbers can be read although no process has written its pages.
    running = [
        name
        for name in wanted
        if not refusals[name] and (is_divided() or states[name].result is None)
    ]
    for name, state in states.items():
        if state.result is None and not state.reason:
            states[name] = State(None, "still to run" if name in wanted else "left out by --parts")
    applicable = [name for name in parts if not refusals[name]]
    if kept := [name for name in applicable if states[name].result is not None]:
        note(
            f"Resuming {folder}: {len(kept)} of {plural(len(applicable), 'part')} "
            f"{'is' if len(kept) == 1 else 'are'} finished ({', '.join(kept)})."
        )
    seconds = _forecast([parts[name] for name in running], subject, settings.budget, workers)
    begun, stopped = time.monotonic(), dict[str, str]()
    result = Debate(folder, settings, states)  # of the parts as they stand
    if not running and current_shard() is None:
        write(folder, page_of(result))
    for number, name in enumerate(running):
        part = parts[name]
        with (
            portion(seconds[name] / max(sum(seconds.values()), 1e-9), name),
            _noted(name, stopped),
            independent(),
        ):
            options = part.options(settings.budget)
            how = {"workers": workers}
            part.run(subject, part.place(folder), options, how)
        if current_shard() is not None:
            continue
        reason = f"stopped: {stopped[name]}" if name in stopped else ""
        states[name] = State(None if reason else part.read(part.place(folder)), reason)
        write(folder, page_of(result))
        if number + 1 < len(running):
            left = sum(seconds[other] for other in running[number + 1 :])
            rest = "" if is_divided() else f"; the rest will take about {span(left)}"
            note(f"{name} is finished{rest}.")
    end_shard("all parts are finished")
    if running:
        took = span(time.monotonic() - begun)
        forecast = "" if is_divided() else f"; the forecast was {span(sum(seconds.values()))}"
        note(f"It took {took}{forecast}.")
    return result


@contextmanager
def _noted(name: str, stopped: dict[str, str]) -> Iterator[None]:
    """Go on with the next part where one cannot be finished, and say why."""
    try:
        yield
    except MissingJobs:
        raise
    except InputError as error:
        stopped[name] = str(error)
        remark(f"{name}: {error}")


def _forecast(
    parts: Sequence[Part], subject: DebateInput, budget: Budget, workers: int | None
) -> dict[str, float]:
    """Measure how long each part will take, and say so."""
    if is_divided():
        return dict.fromkeys((part.name for part in parts), 1.0)
    timer, seconds = Timer(subject.corpus, workers), {}
    for part in parts:
        with working(f"measuring {part.name}", share=0.0):
            seconds[part.name] = part.seconds(subject, part.options(budget), timer)
        note(f"{part.name}: about {span(seconds[part.name])}. {part.question}")
    if parts:
        cores = processes(workers)
        note(
            f"All will take about {span(sum(seconds.values()))} with {plural(cores, 'worker')}; "
            "--parts leaves parts out, and a stopped call goes on."
        )
    return seconds


def _listed(refusals: Mapping[str, str], wanted: Sequence[str]) -> str:
    """Return each reason once, with the parts that it is of."""
    reasons = {
        refusals[name]: [n for n in wanted if refusals[n] == refusals[name]] for name in wanted
    }
    return "; ".join(f"{reason} ({', '.join(of)})" for reason, of in reasons.items())
