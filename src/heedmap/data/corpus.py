"""A corpus: splits of tokenised, labelled texts, and a count of everything that was left out."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.in_memory import InMemory
from heedmap.data.item_vectors import ItemVectors
from heedmap.data.readers import SPLITS
from heedmap.data.text_names import is_place
from heedmap.data.texts import Asked, Pair, Stored, Text, TwoTexts
from heedmap.data.thumbnails import thumbnail
from heedmap.nouns import PAIRS, TEXTS, Nouns
from heedmap.settings.data import DataSettings
from heedmap.terminal.html import html_table
from heedmap.terminal.output import printable, remark

NAMED, WIDE, SHORT = 8, 200, 30  # of what a corpus shows: classes; characters of a line, of a class
UNKNOWN = -1  # the label of a text of which the data say none
KEPT = " (kept)"  # ends a reason in `left_out` for what is not left out, but changed


@dataclass(frozen=True, repr=False)
class Split:
    """Labelled texts. `keys` name them by their own ids, or by where they stand in the data (`text_names`).

    Texts to audit may have no labels: then each one's is UNKNOWN.
    Of pairs of texts, attention is over `tokens`, given `queries`; `allowed` (B, C) are the possible answers.
    With `query_first` the queries are read first. Where attention is over both texts of a pair, `tokens` are
    those of both, and `seconds` the numbers of the second texts' first ones.
    Where long texts are read in windows, one per row, `text_of` numbers the text of each row.
    `written` are the texts of which `tokens` are a view; None where they are not known, or the tokens joined.
    `numbers` are those of the instances in arrays, where a model has nothing else. `vectors` are those of the
    items, where the texts are bags. `targets` are the places of the words that a model is asked about, and
    `choices` the two words of which one is hidden there; `pretokenized` says that such texts came as lists of
    words (see `Asked`). `amounts` are the labels where these are numbers and no classes; then `labels` are
    UNKNOWN.
    Of MANY texts keys, tokens and texts are compact sequences (`heedmap.data.compact`) instead of lists.
    """

    keys: Sequence[str]
    tokens: Sequence[list[str]]
    labels: NDArray[np.int64]
    rationale: list[NDArray[np.bool_]] | None = None
    queries: list[list[str]] | None = None
    allowed: NDArray[np.bool_] | None = None
    text_of: NDArray[np.int64] | None = None
    written: Sequence[str] | None = None
    numbers: NDArray[np.int64] | None = None
    query_first: bool = False
    seconds: NDArray[np.int64] | None = None
    vectors: ItemVectors | None = None
    targets: NDArray[np.int64] | None = None
    choices: list[tuple[str, str]] | None = None
    amounts: NDArray[np.float64] | None = None
    pretokenized: bool = False

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"<Split: {self._sizes()}>"

    def _repr_html_(self) -> str:
        lengths = [len(text) for text in self.tokens] or [0]
        rows: list[tuple[str, object]] = [
            ("texts", self.whole_texts),
            *([] if self.text_of is None else [("windows", len(self))]),
            (
                "tokens per text",
                f"{min(lengths)} to {max(lengths)}, {np.mean(lengths):.1f} on average",
            ),
            ("classes", len(np.unique(self.labels)) if self.labelled else self._unclassed()),
            ("queries", "no" if self.queries is None else "yes"),
            ("marked tokens", "no" if self.rationale is None else "yes"),
        ]
        return html_table(rows, title="Split")

    def _unclassed(self) -> str:
        """Say what is known where no classes are."""
        if self.amounts is None:
            return "no labels"
        return f"numbers as labels, {self.amounts.min():g} to {self.amounts.max():g}"

    def _sizes(self, nouns: Nouns = TEXTS) -> str:
        mean = np.mean([len(text) for text in self.tokens]) if len(self) else 0.0
        windows = "" if self.text_of is None else f" in {len(self)} windows"
        instances = nouns.instance if self.whole_texts == 1 else nouns.instances
        # A token of text may be a word, a sentence or a mark.
        items = "tokens" if nouns in (TEXTS, PAIRS) else nouns.items
        return f"{self.whole_texts} {instances}{windows}, {mean:.1f} {items} on average"

    @property
    def texts(self) -> Sequence[Text]:
        """Return what a model reads: the tokens, or each `Pair`, `TwoTexts` or `Asked` text of them."""
        if self.numbers is not None:
            return [Stored(*row) for row in zip(self.tokens, self.numbers.tolist(), strict=True)]
        if self.seconds is not None:
            return [TwoTexts(*row) for row in zip(self.tokens, self.seconds.tolist(), strict=True)]
        if self.targets is not None:
            choices: Sequence[tuple[str, str] | None] = self.choices or [None] * len(self)
            rows = zip(self.tokens, self.targets.tolist(), choices, strict=True)
            return [Asked(*row, self.pretokenized) for row in rows]
        if self.queries is None:
            return self.tokens
        allowed = [None] * len(self) if self.allowed is None else list(self.allowed)
        pairs = zip(self.tokens, self.queries, allowed, strict=True)
        return [Pair(*pair, self.query_first) for pair in pairs]

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "Split":
        """Return some of the rows, in the given order."""
        indices = np.asarray(rows, dtype=np.int64)
        return Split(
            [self.keys[i] for i in rows],
            [self.tokens[i] for i in rows],
            self.labels[indices],
            None if self.rationale is None else [self.rationale[i] for i in rows],
            None if self.queries is None else [self.queries[i] for i in rows],
            None if self.allowed is None else self.allowed[indices],
            None if self.text_of is None else self.text_of[indices],
            None if self.written is None else [self.written[i] for i in rows],
            None if self.numbers is None else self.numbers[indices],
            self.query_first,
            None if self.seconds is None else self.seconds[indices],
            self.vectors,
            None if self.targets is None else self.targets[indices],
            None if self.choices is None else [self.choices[i] for i in rows],
            None if self.amounts is None else self.amounts[indices],
            self.pretokenized,
        )

    @property
    def places(self) -> list[NDArray[np.float64] | None] | None:
        """Return where the items of each bag lie, (T, 2), None where that is not known; None if of no bag."""
        if self.vectors is None:
            return None
        places = [self.vectors.coordinates(tokens) for tokens in self.tokens]
        return places if any(place is not None for place in places) else None

    @property
    def pictures(self) -> list[str] | None:
        """Return each picture, small, as a data URI; None where the texts are none."""
        if self.vectors is None:
            return None
        pictures = [self.vectors.picture(tokens) for tokens in self.tokens]
        if any(picture is None for picture in pictures):
            return None
        return [thumbnail(picture) for picture in pictures if picture is not None]

    @property
    def labelled(self) -> bool:
        """Return whether the labels are known."""
        return not (self.labels == UNKNOWN).any()

    @property
    def whole_texts(self) -> int:
        """Count the texts that the rows are from."""
        return len(self) if self.text_of is None else len(np.unique(self.text_of))

    @property
    def labels_of_texts(self) -> NDArray[np.int64]:
        """Return the label of each whole text."""
        if self.text_of is None:
            return self.labels
        return self.labels[np.unique(self.text_of, return_index=True)[1]]

    def drawn(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Draw at most `count` texts; return their rows in order: all windows of a text or none."""
        numbers = np.arange(len(self)) if self.text_of is None else np.unique(self.text_of)
        sample = numbers[rng.permutation(len(numbers))[:count]]
        return np.flatnonzero(np.isin(numbers if self.text_of is None else self.text_of, sample))


@dataclass(frozen=True, repr=False)
class Corpus:
    """Splits by name, the classes' names in the order of their numbers, what was left out and why.

    Reasons in `left_out` that end in `(kept)` count what was changed, not left out (see `apart`).
    `also_in` counts the test texts that another split of the source has too, by split; they are not left out.
    `in_memory` are the texts themselves where they came from memory: a run keeps them.
    `notes` say how its files were read (`Rows.notes`), then what is odd about its labels and texts (see
    `heedmap.data.quality`).
    """

    name: str
    classes: list[str]
    splits: dict[str, Split]
    settings: DataSettings
    left_out: dict[str, int] = field(default_factory=dict)
    also_in: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    in_memory: InMemory | None = None

    def __repr__(self) -> str:
        lines = [f"Corpus {self.name}, {self._outputs()}"]
        ellipsis = ", …" if len(self.classes) > NAMED else ""
        counted = self.class_counts()
        for name, part in self.splits.items():
            counts = zip(self.classes[:NAMED], counted.get(name, ()), strict=False)
            class_list = ", ".join(f"{label} {count}" for label, count in counts)
            classes = f"{class_list}{ellipsis}" if part.labelled else part._unclassed()
            lines.append(f"  {name}: {part._sizes(self._nouns())}; {classes}")
        for heading, reasons in apart(self.left_out).items():
            lines += [f"  {heading}: {reason}: {n}" for reason, n in list(reasons.items())[:NAMED]]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(map(_cut, lines))

    def _repr_html_(self) -> str:
        class_list = self.classes[:NAMED]
        ellipsis = [f"{len(self.classes) - NAMED} more"] if len(self.classes) > NAMED else []
        rows: list[list[object]] = []
        class_counts = self.class_counts()
        for name, part in self.splits.items():
            counts: list[Any] = [*class_counts.get(name, ["–"] * len(self.classes))]
            rest_counts = [sum(counts[NAMED:]) if part.labelled else "–"] if ellipsis else []
            rows.append(
                [name, part._sizes(self._nouns()), *counts[: len(class_list)], *rest_counts]
            )
        instances = self._nouns().instances
        head = ["split", instances, *(_cut(name, SHORT) for name in class_list), *ellipsis]
        table = html_table(rows, head, f"Corpus {_cut(self.name)}, {self._outputs()}")
        counted = [
            html_table([(_cut(reason), n) for reason, n in reasons.items()], [heading, instances])
            for heading, reasons in apart(self.left_out).items()
        ]
        odd = [[_cut(note)] for note in self.notes]
        return table + "".join(counted) + (html_table(odd, ["note"]) if odd else "")

    def _outputs(self) -> str:
        is_number = self.settings.amounts or (not self.settings.training and len(self.classes) == 1)
        if is_number:  # to audit, a model with one output gives one
            return "numbers"
        return f"{len(self.classes)} {'class' if len(self.classes) == 1 else 'classes'}"

    def _nouns(self) -> Nouns:
        return self.settings.nouns or TEXTS

    def class_counts(self) -> dict[str, list[int]]:
        """Count the texts of each class, by split; those without labels are not there."""
        return {
            name: np.bincount(part.labels_of_texts, minlength=len(self.classes)).tolist()
            for name, part in self.splits.items()
            if part.labelled
        }

    def warn(self) -> None:
        """Warn of each note in one line, and of test texts that are in other splits too."""
        shared = ", ".join(f"{count} in {name}" for name, count in self.also_in.items() if count)
        also = [f"test texts that are also in other splits: {shared} (kept)"] if shared else []
        source = self.settings.source
        for note in (*self.notes, *also):
            named = source if source.isprintable() else ascii(source)
            remark(f"{named}: {printable(note)}")

    @property
    def pairs(self) -> bool:
        """Return whether its texts are read given others."""
        return any(
            split.queries is not None or split.seconds is not None for split in self.splits.values()
        )

    @property
    def vectors(self) -> ItemVectors | None:
        """Return the vectors of the items where the texts are bags, whose tokens are the items' names."""
        return next((split.vectors for split in self.splits.values()), None)

    @property
    def sentences(self) -> bool:
        """Return whether its tokens are sentences, each of words with a space between them."""
        return self.settings.tokenizer == "sentences" and not self.settings.raw

    def words(self, split: str) -> Iterator[list[str]]:
        """Yield the words of each text of a split, then those of each query."""
        for text in self.splits[split].tokens:
            yield [word for token in text for word in token.split()] if self.sentences else text
        yield from self.splits[split].queries or ()

    def fingerprint(self) -> str:
        """Hash all tokens and labels, and the vectors of items: the same corpus gives the same."""
        digest = hashlib.sha256(json.dumps(self.classes).encode())
        if self.vectors is not None:
            digest.update(self.vectors.content().encode())
        for name in (name for name in SPLITS if name in self.splits):
            split = self.splits[name]
            # The same texts are the same corpus wherever they stand, in a file or in memory.
            keys = [None if is_place(key) else key for key in split.keys]
            # Text by text: all texts in one string would take several times their memory.
            digest.update(f"[{json.dumps(keys)}, [".encode())
            for i, tokens in enumerate(split.tokens):
                digest.update(f"{', ' if i else ''}{json.dumps(tokens)}".encode())
            digest.update(b"]]")
            digest.update(split.labels.tobytes())
            if split.queries is not None:
                digest.update(json.dumps(split.queries).encode())
            if split.allowed is not None:
                digest.update(split.allowed.tobytes())
            if split.query_first:
                digest.update(b"query first")
            if split.seconds is not None:
                digest.update(split.seconds.tobytes())
            if split.targets is not None:
                digest.update(split.targets.tobytes())
                digest.update(json.dumps(split.choices).encode())
            if split.amounts is not None:
                digest.update(split.amounts.tobytes())
        return digest.hexdigest()[:16]


def apart(left_out: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the counts of a corpus by heading: what is `left out`, and what is changed or odd but `kept`.

    >>> apart({"empty text": 2, "cut to 50 tokens (kept)": 1})
    {'left out': {'empty text': 2}, 'kept': {'cut to 50 tokens': 1}}
    """
    by_heading: dict[str, dict[str, int]] = {}
    for reason, count in left_out.items():
        kept_reason = reason.removesuffix(KEPT)
        by_heading.setdefault("left out" if kept_reason == reason else "kept", {})[kept_reason] = (
            count
        )
    return {
        heading: by_heading[heading] for heading in ("left out", "kept") if heading in by_heading
    }


def _cut(line: str, width: int = WIDE) -> str:
    return f"{line[:width]}…" if len(line) > width else line
