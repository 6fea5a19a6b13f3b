"""Read Yahoo! Answers as Webscope publishes it (L6): one XML feed of 12 GB, cut in two anywhere.

The feed is read as it comes, and a sample of each class is kept. Serrano & Smith's released code closes the
first part by hand and reads it twice; here the second goes on where the first was cut.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.parsers import expat

import numpy as np

from heedmap.data.columns import Rows, Tables
from heedmap.data.streams import open_bytes, plain_or_gzipped, reading
from heedmap.errors import InputError
from heedmap.terminal.output import some_of

NAME = "FullOct2007.xml"
PARTS = (f"{NAME}.part1", f"{NAME}.part2")
COLUMNS = {
    "id": "uri",
    "question_title": "subject",
    "question_content": "content",
    "best_answer": "bestanswer",
    "topic": "maincat",
}
"""The columns of a question, named as those of Zhang et al.'s selection are on the Hub, and their elements."""
ELEMENTS = frozenset(COLUMNS.values())
TOPICS = (
    "Society & Culture",
    "Science & Mathematics",
    "Health",
    "Education & Reference",
    "Computers & Internet",
    "Sports",
    "Business & Finance",
    "Entertainment & Music",
    "Family & Relationships",
    "Politics & Government",
)
"""The ten largest categories of Yahoo! Answers, in the order of Zhang et al.'s classes.txt."""
TRAIN_DEV, TEST = 140_000, 5_000
"""Questions of a class that the paper trains and tests with."""
_BLOCK = 1 << 20  # bytes


def read_feed(path: Path, seed: int, most: int = TRAIN_DEV + TEST) -> Tables | None:
    """Read a folder with the feed or its two parts (also .gz), or the feed itself; None where it is neither.

    Of a topic with more than `most` questions as many are drawn, each as likely as any other. Questions of
    other topics than the ten, or of none, are left out and counted.

    Raises:
        InputError: one part alone, no such feed, or broken XML (with the line).
    """
    if (files := _files(path)) is None:
        return None
    rng = np.random.default_rng([seed, 0xFEED])
    samples: dict[str, list[tuple[int, dict[str, str]]]] = {topic: [] for topic in TOPICS}
    seen: Counter[str] = Counter()
    for number, question in enumerate(questions(files), 1):
        topic = question.get(COLUMNS["topic"], "").strip()
        seen[topic] += 1
        sample = samples.get(topic)
        if sample is None:
            continue
        # Reservoir sampling: the i-th question takes the place of one that was drawn with probability most / i.
        place = len(sample) if len(sample) < most else int(rng.integers(seen[topic]))
        if place < most:
            sample[place : place + 1] = [(number, question)]
    left_out = Counter(
        {f"topic {topic}: not drawn": seen[topic] - len(samples[topic]) for topic in TOPICS}
    )
    left_out["topic missing"] = seen.pop("", 0)
    others = [topic for topic, _ in seen.most_common() if topic not in samples]
    left_out[f"topic is none of the {len(TOPICS)} ({some_of(others, 3)})"] = sum(
        seen[topic] for topic in others
    )
    rows = sorted((row for sample in samples.values() for row in sample), key=lambda row: row[0])
    return Tables(
        {
            "all": Rows(
                list(COLUMNS),
                len(rows),
                lambda name: [question.get(COLUMNS[name]) for _, question in rows],
                place_of=lambda i: f"{files[0].parent / NAME}, question {rows[i][0]}",
            )
        },
        {reason: count for reason, count in left_out.items() if count},
    )


def _files(path: Path) -> list[Path] | None:
    """Return the file of the feed, or those of its parts in their order."""
    if path.is_file():
        name = path.name.removesuffix(".gz")
        if name in PARTS:
            raise InputError(
                f"{path}: expected a whole feed, got one of its two parts; give the folder with both"
            )
        return [path] if name == NAME else None
    if (whole := plain_or_gzipped(path / NAME)) is not None:
        return [whole]
    parts = {name: plain_or_gzipped(path / name) for name in PARTS}
    present = [file for file in parts.values() if file is not None]
    if len(present) == 1:
        missing = next(name for name, file in parts.items() if file is None)
        raise InputError(
            f"{path}: expected both parts of the feed, which is cut anywhere, got {present[0].name} alone; put "
            f"{missing} (or {missing}.gz) beside it"
        )
    return present or None


def questions(files: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Yield of each question its own elements that are read, by name; those of its answers are none.

    Raises:
        InputError: broken XML, or a document type, whose entities could grow without a limit.
    """
    feed = _Feed(files[0].parent / NAME)
    try:
        for file in files:
            with reading(file), open_bytes(file) as opened:
                while block := opened.read(_BLOCK):
                    yield from feed.read(block)
        yield from feed.read(b"", is_last=True)
    except expat.ExpatError as error:
        raise InputError(
            f"{files[0].parent / NAME}, line {error.lineno}: expected the XML of Yahoo! Answers, got "
            f"other text ({expat.errors.messages[error.code]}); unpack or download it again"
        ) from error


class _Feed:
    """What the parser has read of the current question, and the questions before it."""

    def __init__(self, source: Path) -> None:
        self._source = source  # in errors
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_document_type
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add
        self._questions: list[dict[str, str]] = []
        self._question: dict[str, str] = {}
        self._pieces: list[str] | None = None  # of the element that is read, if it is one of ours
        self._depth = 0  # of the current element within the question

    def read(self, block: bytes, *, is_last: bool = False) -> list[dict[str, str]]:
        """Read on, and return the questions that end in the block."""
        self._questions = []
        self._parser.Parse(block, is_last)
        return self._questions

    def _start(self, name: str, attributes: object) -> None:
        if name == "document":
            self._question, self._depth = {}, 0
            return
        self._depth += 1
        if self._depth == 1:
            self._pieces = [] if name in ELEMENTS else None

    def _add(self, text: str) -> None:
        if self._pieces is not None:
            self._pieces.append(text)

    def _end(self, name: str) -> None:
        if name == "document":
            self._questions.append(self._question)
            return
        if self._depth == 1 and self._pieces is not None:
            self._question[name] = "".join(self._pieces)
            self._pieces = None
        self._depth -= 1

    def _refuse_document_type(self, name: str, *declaration: object) -> None:
        raise InputError(
            f"{self._source}: expected a feed without a document type, got one ({name:.40}), whose entities "
            "could grow without a limit; the published feed has none"
        )
