"""A bAbI story as a row of a corpus, made as Jain & Wallace (2019) make it."""

import numpy as np

from heedmap.data.babi import Story, stories
from heedmap.data.rows import Row
from heedmap.errors import InputError


def row_of(story: Story, key: str) -> Row:
    """The sentences with a full stop between them, asked about by the question without its mark.

    After the last sentence there is no full stop. The rationale is true on the words of the
    supporting sentences; the full stops belong to none. The label is the answer. Jain & Wallace keep
    capitals, which distinguish no two words here, and take every word for a possible answer.

    Raises:
        InputError: a sentence or the question has no words, or there is no supporting sentence with
            that index.
    """
    sentences = [_without(".", sentence) for sentence in story.sentences]
    query = _without("?", story.question)
    if not sentences or not all([*sentences, query]):
        raise InputError(f"{key}: expected words in the question and in every sentence, got none")
    if not all(0 <= index < len(sentences) for index in story.supporting):
        raise InputError(
            f"{key}: expected supporting sentences from 0 to {len(sentences) - 1}, "
            f"got {', '.join(map(str, story.supporting))}"
        )
    tokens: list[str] = []
    rationale: list[bool] = []
    for index, sentence in enumerate(sentences):
        if index > 0:
            tokens.append(".")
            rationale.append(False)
        tokens += sentence
        rationale += [index in story.supporting] * len(sentence)
    return Row(key, tokens, story.answer, np.array(rationale, dtype=np.bool_), query)


def _without(mark: str, tokens: list[str]) -> list[str]:
    return tokens[:-1] if tokens[-1:] == [mark] else tokens


def generated_babi(task: int, seed: int) -> dict[str, list[Row]]:
    """Stories of our own, as many as the paper's (10,000 to train and select on, 1,000 to test)."""
    found: dict[str, list[Row]] = {}
    for at, (name, count) in enumerate((("train", 9000), ("dev", 1000), ("test", 1000))):
        told = stories(task, count, 3 * seed + at)
        found[name] = [row_of(story, f"babi{task}-{name}-{i}") for i, story in enumerate(told)]
    return found
