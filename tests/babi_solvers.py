"""Test stories, and two solvers that read English and know nothing of the generator."""

import gzip
import json
from functools import cache

import pytest

from heedmap.data.babi import ACTORS, PLACES, THINGS, stories
from heedmap.data.babi_rows import story_of

TASKS = (1, 2, 3)
tasks = pytest.mark.parametrize("task", TASKS)
TAKING = {"took", "got", "grabbed", "picked"}


@cache
def ours(task):
    """Stories for what is true of every one of them and of them together."""
    return stories(task, {1: 3000, 2: 3000, 3: 5000}[task], seed=0)


@cache
def theirs(folder, task):
    found = []
    for split in ("train", "dev", "test"):
        with gzip.open(folder / f"babi_qa{task}" / f"{split}.jsonl.gz", "rt") as file:
            found += [story_of(json.loads(line)) for line in file]
    return found


def read_sentence(sentence):
    """Who, what or where to, and whether a thing is taken (True), dropped (False) or neither."""
    (what,) = {*PLACES, *THINGS}.intersection(sentence)
    taken = None if what in PLACES else bool(TAKING.intersection(sentence))
    return sentence[0], what, taken


def ways(sentences, possible=True):
    """Every person's and thing's known places in order, as the sentences tell them.

    Unless the sentences are known to be changed, all that they tell must be `possible`.
    """
    carried = dict.fromkeys(THINGS)
    way = {name: [] for name in (*ACTORS, *THINGS)}

    def comes_to(name, place):
        if way[name][-1:] != [place]:
            way[name].append(place)

    for sentence in sentences:
        actor, what, taken = read_sentence(sentence)
        if taken is None:
            comes_to(actor, what)
        elif taken:
            assert carried[what] is None, "nobody takes what somebody has"
            carried[what] = actor
        else:
            assert carried[what] == actor, "nobody drops what they do not have"
            carried[what] = None
        if taken is not None and way[actor]:
            assert not possible or way[what][-1:] in ([], way[actor][-1:]), (
                "a thing is where its taker is"
            )
            comes_to(what, way[actor][-1])
        for thing, carrier in carried.items():
            if carrier == actor and way[actor]:
                comes_to(thing, way[actor][-1])
    return way


def answer_of(way, question):
    """The answer to a question, from the places in order of whom or what it is about."""
    if "before" not in question:
        return way[-1]
    asked = question[-2]
    last = max(index for index, place in enumerate(way) if place == asked)
    return way[last - 1]


def from_whole_story(story, possible=True):
    (subject,) = {*ACTORS, *THINGS}.intersection(story.question)
    return answer_of(ways(story.sentences, possible)[subject], story.question)


def from_supporting(story):
    """Of a thing, the moves of whoever takes or drops it, who has it all along for all we read."""
    events = [read_sentence(story.sentences[index]) for index in sorted(story.supporting)]
    carriers = {actor for actor, what, taken in events if taken is not None}
    (subject,) = carriers or set(ACTORS).intersection(story.question)
    way = [what for actor, what, taken in events if actor == subject and taken is None]
    return answer_of(way, story.question)
