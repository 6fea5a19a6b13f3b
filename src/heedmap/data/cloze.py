"""The CNN questions of Hermann et al. (2015): which entity does the gap in a question stand for?

One `*.question` file per question, with empty lines between its parts: the address of the article; the article;
the question, with `@placeholder` in it; the answer; the name of each entity.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from heedmap.data.readers import SPLITS, one_per_split
from heedmap.data.rows import Parts, Row
from heedmap.data.tokens import spaces
from heedmap.errors import InputError

_ENTITY = re.compile(r"@entity\d+")
_WANTED = (
    "the CNN questions of the DeepMind Q&A data set (cs.nyu.edu/~kcho/DMQA, or github.com/deepmind/rc-data), "
    "as questions/training, questions/validation and questions/test with *.question files in them"
)
_PARTS = (
    "its address, article, question, answer and '@entity0:Name' lines, an empty line before each"
)


def read(folder: Path) -> tuple[Parts, dict[str, int]]:
    """Read the questions by split, in the order of their files' names, and count what is left out and why.

    A row's tokens are the article, its query the question, its label the answer, its candidates the
    entities that occur in the article. All is in lower case; the texts come tokenised. The entities' names
    are not used.

    Args:
        folder: holds `training`, `validation` and `test` (or `train` and `dev`), or `questions` that does.

    Raises:
        InputError: a split missing, empty or there twice; a file in another layout; an answer that does not
            occur in its article.
    """
    left_out: Counter[str] = Counter()
    parts: dict[str, list[Row]] = {}
    for split, path in _split_folders(Path(folder)).items():
        parts[split], counts = _split(path)
        left_out.update({f"{split}: {reason}": count for reason, count in counts.items()})
    return parts, dict(left_out)


def _split_folders(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected {_WANTED}")
    home = folder / "questions" if (folder / "questions").is_dir() else folder
    folders = (path for path in sorted(home.iterdir()) if path.is_dir())
    by_split = one_per_split(home, ((path, path.name) for path in folders))
    if missing := [split for split in SPLITS if split not in by_split]:
        names = ", ".join(sorted(path.name for path in home.iterdir())[:8]) or "nothing"
        raise InputError(
            f"{home}: no {' or '.join(missing)} split, found {names}; expected {_WANTED}"
        )
    return {split: by_split[split] for split in SPLITS}


def _split(folder: Path) -> tuple[list[Row], Counter[str]]:
    rows, left_out = [], Counter[str]()
    for path in sorted(folder.iterdir()):
        if path.suffix != ".question" or path.name.startswith("."):
            left_out["not a .question file"] += 1
        elif (row := _question(path)) is None:
            left_out["empty article"] += 1
        else:
            rows.append(row)
    if not rows:
        raise InputError(f"{folder}: no questions; expected {_WANTED}")
    return rows, left_out


def _question(path: Path) -> Row | None:
    """Make the row of one file; return None where there is no article.

    Raises:
        InputError: naming the file.
    """
    try:
        # Not `splitlines`, which also breaks at separators inside articles.
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable as UTF-8 ({error}); get the file again") from error
    # The entities' names come last: where there is one, the file is not cut short.
    if len(lines) < 9 or any(lines[1:8:2]) or not _ENTITY.match(lines[8]):
        raise InputError(f"{path}: expected {_PARTS}; this file differs, get it again")
    article, question, answer = lines[2], lines[4], lines[6].lower()
    if not article:
        return None
    tokens, query = tokenize(article), tokenize(question)
    if "@placeholder" not in query:
        raise InputError(
            f"{path}: expected a question with @placeholder in it, got {question!r:.60}; get the file again"
        )
    candidates = entities(tokens)
    if answer not in candidates:
        examples = ", ".join(candidates[:8]) or "none"
        raise InputError(
            f"{path}: expected an answer among the entities of the article ({examples}), got {answer!r:.60}; "
            "get the file again or take it out"
        )
    return Row(path.stem, tokens, answer, query=query, candidates=candidates)


def tokenize(text: str) -> list[str]:
    """Return the lower-case tokens of an article or a question, which come tokenised."""
    return spaces(text.lower())


def entities(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the entities among an article's tokens: the possible answers, in alphabetical order."""
    return tuple(sorted({token for token in tokens if _ENTITY.fullmatch(token)}))
