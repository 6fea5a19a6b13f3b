from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from babi_solvers import from_supporting, from_whole_story, ours, read_sentence, tasks, theirs
from wording import refused

from heedmap.data.babi import PLACES, QUESTIONS_PER_WORLD, THINGS, stories


@tasks
def test_the_answer_follows_from_the_whole_story(task):
    for story in ours(task)[:300]:
        assert from_whole_story(story) == story.answer


@tasks
def test_the_answer_follows_from_the_supporting_sentences_alone(task):
    for story in ours(task)[:300]:
        assert from_supporting(story) == story.answer
        assert len(story.supporting) == len(set(story.supporting)) == task


@tasks
def test_another_place_in_the_last_supporting_sentence_is_another_answer(task):
    for story in ours(task)[:300]:
        other = next(p for p in PLACES if p != story.answer and p not in story.question)
        sentences = [list(sentence) for sentence in story.sentences]
        told = sentences[story.supporting[-1]]
        told[told.index(story.answer)] = other
        assert from_whole_story(replace(story, sentences=sentences), possible=False) == other


@tasks
def test_the_supporting_sentences_stand_in_the_order_of_the_data(task):
    for story in ours(task)[:300]:
        acts = [read_sentence(story.sentences[index]) for index in story.supporting]
        assert (
            [act[2] is None for act in acts] == [True]
            if task == 1
            else [False, *[True] * (task - 1)]
        )
        if task == 3:
            _, to_asked, to_answer = story.supporting
            assert to_answer < to_asked
            assert acts[1][1] == story.question[-2]
        assert acts[-1][1] == story.answer


def test_a_question_reads_as_in_the_data():
    assert ours(1)[0].question[:2] == ["where", "is"]
    for story in ours(3)[:20]:
        where, was, the, thing, before, article, place, mark = story.question
        assert (where, was, the, before, article, mark) == (
            "where",
            "was",
            "the",
            "before",
            "the",
            "?",
        )
        assert thing in THINGS
        assert place in PLACES


@tasks
def test_the_questions_of_a_world_come_one_after_another(task):
    told = ours(task)[: 20 * QUESTIONS_PER_WORLD]
    for start in range(0, len(told), QUESTIONS_PER_WORLD):
        world = told[start : start + QUESTIONS_PER_WORLD]
        for earlier, later in pairwise(world):
            assert len(earlier.sentences) < len(later.sentences)
            assert later.sentences[: len(earlier.sentences)] == earlier.sentences


@tasks
def test_the_same_seed_tells_the_same_stories(task):
    assert stories(task, 40, seed=3) == stories(task, 40, seed=3)
    assert stories(task, 40, seed=3) != stories(task, 40, seed=4)


@tasks
def test_more_stories_begin_with_the_same_ones(task):
    assert stories(task, 33, seed=3)[:7] == stories(task, 7, seed=3)


def test_no_global_random_state_is_read_or_moved():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    stories(2, 5, seed=0)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((4, 1, 0), ["task", "1, 2 and 3", "4"]),
        ((1, 0, 0), ["count", "1", "0"]),
        ((1, 1, -1), ["seed", "-1"]),
    ],
)
def test_what_cannot_be_told_is_refused(arguments, named):
    with refused(*named):
        stories(*arguments)


@tasks
def test_the_solvers_answer_the_data_too(task, real_data):
    for story in theirs(real_data, task)[:300]:
        assert from_whole_story(story) == from_supporting(story) == story.answer
