"""bAbI stories as rows: generated, or read from the original files (Weston et al. 2015).

Two layouts are known. The official one is one text file per task and split, in one folder per size:

    1 Mary moved to the bathroom.
    2 John went to the hallway.
    3 Where is Mary? <tab> bathroom <tab> 1

Every line has a number, which starts at 1 again with a new world; a question has its answer and the
numbers of its supporting lines. The other is one JSON object per question, with the fields `story`,
`question`, `answer` and `supporting` (indices of sentences, from 0).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heedmap.data.babi import Story, stories
from heedmap.data.readers import read_rows, split_files
from heedmap.data.rows import Parts, Row
from heedmap.data.tokens import words
from heedmap.errors import InputError

_LOST_TABS = re.compile(r"\?\s+\S")  # a question whose tabs were lost
_NUMBERED = re.compile(r"(\d+) (.*)")


def generated_babi(task: int, seed: int) -> Parts:
    """Generate as many stories as the paper has (10,000 to train and select on, 1,000 to test)."""
    sizes = {"train": 9000, "dev": 1000, "test": 1000}
    return _rows(
        task,
        {
            name: stories(task, count, len(sizes) * seed + i)
            for i, (name, count) in enumerate(sizes.items())
        },
    )


def read_babi(folder: Path, task: int) -> tuple[Parts, dict[str, int]]:
    """Read the stories of one task by split, in either layout; nothing is left out.

    Raises:
        InputError: no file, or two, for the task and split; or a broken file, with the line or row.
    """
    by_split = split_files(folder)
    stories_by_split = {name: _read_json(path) for name, path in by_split.items()}
    return _rows(task, stories_by_split or read_official(folder, task)), {}


def _rows(task: int, splits: Mapping[str, Sequence[Story]]) -> Parts:
    return {
        name: [row_of(story, f"babi{task}-{name}-{i}") for i, story in enumerate(split_stories)]
        for name, split_stories in splits.items()
    }


def _read_json(path: Path) -> list[Story]:
    parsed = []
    for number, row in enumerate(read_rows(path), start=1):
        try:
            parsed.append(story_of(row))
        except InputError as error:
            raise InputError(f"{path}, row {number}: {error}") from error
    return parsed


def row_of(story: Story, key: str) -> Row:
    """Join the sentences with full stops between them; the query is the question without its mark.

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


def tokenize(text: str) -> list[str]:
    """Return the words of a story, or of a question, as `row_of` has them: no mark after the last one."""
    return _without("?", _without(".", words(text)))


def read_official(folder: Path, task: int) -> dict[str, list[Story]]:
    """Read the `train` and `test` stories of one task from a folder such as `en` or `en-10k`.

    There is no dev file in it: the caller takes one from the training stories.

    Raises:
        InputError: no file, or two, for the task and split; or a broken file, with the line.
    """
    return {split: read_stories(_official_file(folder, task, split)) for split in ("train", "test")}


def _official_file(folder: Path, task: int, split: str) -> Path:
    pattern = f"qa{task}_*{split}.txt"
    files = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if len(files) != 1:
        got = " and ".join(path.name for path in files) or "none"
        raise InputError(
            f"{folder}: expected one file named {pattern}, got {got}; give the folder of one size, "
            "such as en or en-10k"
        )
    return files[0]


def read_stories(path: Path) -> list[Story]:
    """Read every question of one file in the official layout, with the sentences before it.

    Raises:
        InputError: the file cannot be read, has no question, or breaks the layout, with the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8; save the file as UTF-8 and try again") from error
    questions: list[Story] = []
    sentences: list[list[str]] = []
    index_of: dict[int, int] = {}  # from the number of a line to that of the sentence in it
    expected = 1
    for line_number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{path}, line {line_number}"
        number, content = _numbered(line, expected, place)
        if number == 1:
            sentences, index_of = [], {}
        expected = number + 1
        if content.rstrip().endswith("?") or "\t" in content or _LOST_TABS.search(content):
            questions.append(_question(content, sentences, index_of, place))
        else:
            index_of[number] = len(sentences)
            sentences.append(words(content))
    if not questions:
        raise InputError(
            f"{path}: no question; expected lines such as '3 Where is Mary? \\tbath\\t1'"
        )
    return questions


def _numbered(line: str, expected: int, place: str) -> tuple[int, str]:
    match = _NUMBERED.fullmatch(line.strip())
    if not match:
        raise InputError(f"{place}: expected a number and a sentence, got {line.strip()[:60]!r}")
    number = int(match[1])
    if number not in {1, expected}:
        raise InputError(
            f"{place}: expected 1, the number that starts a new story, or the number after the line "
            f"above, got {number}; put the missing lines back"
        )
    return number, match[2]


def _question(
    content: str, sentences: list[list[str]], index_of: dict[int, int], place: str
) -> Story:
    fields = [field.strip() for field in content.split("\t")]
    if len(fields) != 3 or not all(fields):
        raise InputError(
            f"{place}: expected question, answer and supporting lines with a tab between them, "
            f"got {content[:60]!r}"
        )
    question, answer, lines = fields
    supporting = []
    for line in lines.split():
        if not line.isdecimal() or int(line) not in index_of:
            raise InputError(
                f"{place}: expected the numbers of sentences above the question as its supporting "
                f"lines, got {line!r}"
            )
        supporting.append(index_of[int(line)])
    return Story(sentences[:], words(question), answer.lower(), tuple(supporting))


def story_of(row: Mapping[str, Any]) -> Story:
    """Make a story of a row of the JSON layout; its other fields are ignored.

    Raises:
        InputError: a field is missing or not what it should be. The caller knows the file and line.
    """
    story = _field(row, "story", "a list of sentences", _is_sentences)
    question = _field(row, "question", "a text", _is_text)
    answer = _field(row, "answer", "a text", _is_text)
    supporting = _field(
        row,
        "supporting",
        f"a list of indices of sentences, from 0 to {len(story) - 1}",
        lambda value: _is_indices(value, len(story)),
    )
    sentences = [words(sentence) for sentence in story]
    return Story(sentences, words(question), answer.strip().lower(), tuple(supporting))


def _field(
    row: Mapping[str, Any], name: str, expected: str, is_right: Callable[[Any], bool]
) -> Any:
    if name not in row:
        raise InputError(
            f"expected the field {name!r} ({expected}), got {', '.join(row) or 'none'}"
        )
    if not is_right(row[name]):
        raise InputError(f"{name}: expected {expected}, got {str(row[name])[:60]!r}")
    return row[name]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_sentences(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_indices(value: object, count: int) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(index) is int and 0 <= index < count for index in value)
    )
