"""The generated stories have the statistics of the original data."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from babi_solvers import ours, tasks, theirs

from heedmap.data.babi import ACTORS, PLACES, QUESTIONS_PER_WORLD, THINGS
from heedmap.data.load import load
from heedmap.runs.train import train
from heedmap.training.evaluation import evaluate


def vocabulary(told):
    return {
        token for story in told for text in (*story.sentences, story.question) for token in text
    }


def shares(values):
    values = list(values)
    return {value: count / len(values) for value, count in Counter(values).items()}


def last_stories(told):
    """The longest story of each world: all that is told of it."""
    return told[QUESTIONS_PER_WORLD - 1 :: QUESTIONS_PER_WORLD]


def close_shares(mine, real, atol):
    mine, real = shares(mine), shares(real)
    assert mine.keys() == real.keys()
    for value, share in real.items():
        assert mine[value] == pytest.approx(share, abs=atol), value


@tasks
def test_the_vocabulary_is_that_of_the_data(task, real_data):
    assert vocabulary(ours(task)) == vocabulary(theirs(real_data, task))


@tasks
def test_stories_are_as_long_as_in_the_data(task, real_data):
    def lengths(told):
        sentences = [len(story.sentences) for story in told]
        tokens = [sum(map(len, story.sentences)) for story in told]
        return [f(counts) for counts in (sentences, tokens) for f in (np.mean, np.std)]

    mine, real = lengths(ours(task)), lengths(theirs(real_data, task))
    np.testing.assert_allclose(mine, real, rtol=0.02 if task == 1 else 0.1)


@tasks
def test_answers_are_distributed_as_in_the_data(task, real_data):
    mine, real = ours(task), theirs(real_data, task)
    close_shares([s.answer for s in mine], [s.answer for s in real], atol=0.05)


@tasks
def test_supporting_sentences_are_as_far_from_the_question_as_in_the_data(task, real_data):
    def distances(told):
        return np.array([[len(s.sentences) - index for index in s.supporting] for s in told])

    mine, real = distances(ours(task)), distances(theirs(real_data, task))
    np.testing.assert_allclose(mine.mean(0), real.mean(0), rtol=0.07)
    np.testing.assert_allclose(mine.std(0), real.std(0), rtol=0.07)
    close_shares(mine[:, 0], real[:, 0], atol=0.04)


@tasks
def test_what_happens_in_a_world_is_what_happens_in_the_data(task, real_data):
    def phrases(told):
        names = {*ACTORS, *PLACES, *THINGS}
        for story in last_stories(told):
            for sentence in story.sentences:
                yield " ".join(token for token in sentence if token not in names)

    close_shares(phrases(ours(task)), phrases(theirs(real_data, task)), atol=0.01)


@tasks
def test_people_act_in_a_row_as_often_as_in_the_data(task, real_data):
    def repeats(told):
        return np.mean(
            [
                one[0] == other[0]
                for story in last_stories(told)
                for one, other in pairwise(story.sentences)
            ]
        )

    assert repeats(ours(task)) == pytest.approx(repeats(theirs(real_data, task)), abs=0.015)


@pytest.mark.exhaustive
def test_a_model_trained_on_our_stories_answers_the_real_ones(real_data):
    run = train(load("babi_qa1"), encoder="lstm", score="additive", seed=0, epochs=30)
    real = load(real_data / "babi_qa1", dataset="babi_qa1")
    assert real.classes == run.model.classes
    assert evaluate(run.model, run.encoded(real.splits["test"]))["accuracy"] > 0.98
