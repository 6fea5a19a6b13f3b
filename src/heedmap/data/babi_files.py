"""The original bAbI stories (Weston et al. 2015), read into the `Story` of `heedmap.data.babi`.

Two layouts are known. The official one is a text file a task and split, in a folder for each size:

    1 Mary moved to the bathroom.
    2 John went to the hallway.
    3 Where is Mary? <tab> bathroom <tab> 1

Every line has a number, which starts at 1 again with a new world; a question has its answer and the
numbers of its supporting lines. The other is one JSON object a question, with the fields `story`,
`question`, `answer` and `supporting` (indices of sentences, from 0).
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from heedmap.data.babi import Story
from heedmap.data.tokens import words
from heedmap.errors import InputError

_ASKED = re.compile(r"\?\s+\S")  # a question whose tabs were lost
_NUMBERED = re.compile(r"(\d+) (.*)")


def read_official(folder: Path, task: int) -> dict[str, list[Story]]:
    """The `train` and `test` stories of one task, from a folder such as `en` or `en-10k`.

    There is no dev file in it: taking one from the training stories is left to the caller.

    Raises:
        InputError: no file, or two, for the task and split; or a broken file, with the line.
    """
    return {split: read_stories(_official_file(folder, task, split)) for split in ("train", "test")}


def _official_file(folder: Path, task: int, split: str) -> Path:
    pattern = f"qa{task}_*{split}.txt"
    found = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if len(found) != 1:
        got = " and ".join(path.name for path in found) or "none"
        raise InputError(
            f"{folder}: expected one file named {pattern}, got {got}; give the folder of one size, "
            "such as en or en-10k"
        )
    return found[0]


def read_stories(path: Path) -> list[Story]:
    """Every question of one file in the official layout, with the sentences before it.

    Raises:
        InputError: the file cannot be read, has no question, or breaks the layout, with the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8; save the file as UTF-8 and try again") from error
    stories: list[Story] = []
    sentences: list[list[str]] = []
    index_of: dict[int, int] = {}  # from the number of a line to that of the sentence in it
    expected = 1
    for line_number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {line_number}"
        number, content = _numbered(line, expected, where)
        if number == 1:
            sentences, index_of = [], {}
        expected = number + 1
        if content.rstrip().endswith("?") or "\t" in content or _ASKED.search(content):
            stories.append(_asked(content, sentences, index_of, where))
        else:
            index_of[number] = len(sentences)
            sentences.append(words(content))
    if not stories:
        raise InputError(
            f"{path}: no question; expected lines such as '3 Where is Mary? \\tbath\\t1'"
        )
    return stories


def _numbered(line: str, expected: int, where: str) -> tuple[int, str]:
    match = _NUMBERED.fullmatch(line.strip())
    if not match:
        raise InputError(f"{where}: expected a number and a sentence, got {line.strip()[:60]!r}")
    number = int(match[1])
    if number not in {1, expected}:
        raise InputError(
            f"{where}: expected 1, the number that starts a new story, or the number after the line "
            f"above, got {number}; put the missing lines back"
        )
    return number, match[2]


def _asked(content: str, sentences: list[list[str]], index_of: dict[int, int], where: str) -> Story:
    fields = [field.strip() for field in content.split("\t")]
    if len(fields) != 3 or not all(fields):
        raise InputError(
            f"{where}: expected question, answer and supporting lines with a tab between them, "
            f"got {content[:60]!r}"
        )
    question, answer, lines = fields
    supporting = []
    for line in lines.split():
        if not line.isdecimal() or int(line) not in index_of:
            raise InputError(
                f"{where}: expected the numbers of sentences above the question as its supporting "
                f"lines, got {line!r}"
            )
        supporting.append(index_of[int(line)])
    return Story(sentences[:], words(question), answer.lower(), tuple(supporting))


def story_of(row: Mapping[str, Any]) -> Story:
    """A story from a row of the JSON layout; its other fields are ignored.

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
