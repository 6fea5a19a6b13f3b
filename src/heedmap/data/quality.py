"""What is odd about a corpus: labels that look alike or missing, classes of few texts, texts that repeat.

Nothing is changed or left out: each note is one line, with counts. Only texts without spaces between their
words are refused.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from heedmap.data.labels import (
    LABELLED,
    MAYBE_NO_VALUE,
    NO_VALUE,
    number_of,
    numbers_of,
    ordered,
)
from heedmap.data.markup import markup_in, markup_note
from heedmap.data.rows import Parts, Row, column
from heedmap.data.splits import text_key
from heedmap.data.texts import text_hashes
from heedmap.data.tokens import without_markup
from heedmap.errors import InputError
from heedmap.nouns import TEXTS, Nouns
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import quoted, some_of

FEW = 10
"""Classes with fewer training texts are noted, in corpora of more than `LABELLED` rows."""
MOST_NUMBERS = 20
"""So many numbers may be names of classes; more may be an amount."""
MOST_WITHOUT_SPACES = 0.1
"""Share of the texts that may be written without spaces between words; more are refused."""
LEAST_SPACES = 0.1
"""Spaces per character of such a script from which its words are taken to be separated."""
NAMED = 5  # labels or texts that a line names
MISSING = NO_VALUE | MAYBE_NO_VALUE
# Thai, Lao, Burmese, Khmer, Japanese kana, Chinese characters.
_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED, _UNSPACED_RUN = re.compile(f"[{_SCRIPTS}]"), re.compile(f"[{_SCRIPTS}]+")
_CODE = re.compile(r"[+-]?0\d")
_NO_LETTERS = re.compile(r"\W+")
_SPACE_BETWEEN = re.compile(rf"(?<=[{_SCRIPTS}])\s+(?=[{_SCRIPTS}])")


def notes(
    parts: Parts,
    strangers: Iterable[Row],
    classes: Sequence[str],
    number: Mapping[str, int],
    settings: DataSettings,
) -> list[str]:
    """Return what is odd about the rows of a corpus.

    Args:
        parts: by split.
        strangers: rows of classes that are none of the corpus's.
        classes: of the corpus, in their order.
        number: of each label's class.
        settings: of the corpus.

    Raises:
        InputError: texts without spaces between their words, more than MOST_WITHOUT_SPACES of them.
    """
    of_rows = chain.from_iterable(column(part, "label") for part in parts.values())
    of_strangers = (row.label for row in strangers)
    labels = Counter(label for label in chain(of_rows, of_strangers) if label)
    count = sum(map(len, parts.values()))
    # The names of a bag's items or a picture's patches are no texts.
    nouns = settings.nouns or TEXTS
    of_words = nouns.item == TEXTS.item
    texts = {name: _Texts(part, settings) for name, part in parts.items() if of_words}
    remarks = [_without_spaces(texts, settings), _alike(labels, number), _equal(labels, number)]
    remarks += [
        _missing_labels(labels, () if settings.training and settings.dataset is None else classes),
        _two_kinds(labels),
        _missing_texts(texts),
        _nulls(texts),
        _markup(texts, settings),
        _numbers(labels),
    ]
    if not labels:
        pass  # no classes, so that none is small
    elif count > LABELLED:
        met = set(number.values())
        unmet = [name for i, name in enumerate(classes) if i not in met]
        remarks += _small_classes(parts, unmet, nouns)
    elif settings.dataset is None and 2 * len(labels) > count > FEW:
        remarks.append(
            f"{len(labels)} different labels in {count} rows ({_some(labels)}): is this the label column?"
        )
    return [note for note in (*remarks, *_repeated(parts, nouns)) if note]


class _Texts:
    """The texts of a split as they were written, one after another: many rows are packed."""

    def __init__(self, rows: Sequence[Row], settings: DataSettings) -> None:
        self._rows, self._between = rows, "" if settings.raw else " "

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        written = column(self._rows, "written")
        for text, tokens in zip(written, column(self._rows, "tokens"), strict=True):
            yield self._between.join(tokens) if text is None else text


def _some(counts: Mapping[str, int] | Sequence[str]) -> str:
    """Name the first NAMED, with their counts if they have any."""
    return some_of(
        [
            f"{quoted(name)} {counts[name]}" if isinstance(counts, Mapping) else quoted(name)
            for name in counts
        ],
        NAMED,
    )


# --- labels -----------------------------------------------------------------------------------------------


def _alike(labels: Mapping[str, int], number: Mapping[str, int]) -> str | None:
    alike = _groups(labels, folded)
    if not alike:
        return None
    return (
        "labels that differ only by case, white space, accents or Unicode form: "
        f"{_shown(alike, labels, number)}"
    )


def _equal(labels: Mapping[str, int], number: Mapping[str, int]) -> str | None:
    """Note labels that are one number (1, 1.0), but for those of leading zeros (01), which are codes."""
    numbers = [label for label in labels if number_of(label) is not None]
    equal = _groups([label for label in numbers if not _CODE.match(label)], number_of)
    return f"labels that are equal as numbers: {_shown(equal, labels, number)}" if equal else None


def _groups(labels: Iterable[str], key: Callable[[str], Hashable]) -> list[list[str]]:
    """Return the labels of which several have the same key, in groups."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for label in sorted(labels):
        groups[key(label)].append(label)
    return [group for group in groups.values() if len(group) > 1]


def _shown(
    groups: Sequence[Sequence[str]], labels: Mapping[str, int], number: Mapping[str, int]
) -> str:
    """Name groups of labels with their counts, and say of each whether its labels are one class."""
    groups_shown = [
        f"{_some({label: labels[label] for label in group})} "
        f"{'stay apart' if _apart(group, number) else 'are one class of the model'}"
        for group in groups[:NAMED]
    ]
    rest = f"; and {len(groups) - NAMED} more" if len(groups) > NAMED else ""
    return f"{'; '.join(groups_shown)}{rest}"


def _apart(labels: Sequence[str], number: Mapping[str, int]) -> bool:
    return len({number.get(label, label) for label in labels}) > 1


def folded(label: str) -> str:
    """Return a label without what two spellings of one name may differ by: case, white space, accents.

    >>> folded("Pósitive  one") == folded("positive ONE")
    True
    """
    if not label.isascii():
        parts = unicodedata.normalize("NFKD", label)
        # Accents of Latin, Greek and Cyrillic letters: those of other scripts make other words.
        parts = "".join(c for c in parts if not "\u0300" <= c <= "\u036f")
        label = "".join(c for c in parts if unicodedata.category(c) != "Cf")  # zero width
    return " ".join(label.casefold().split())


def _is_missing(text: str) -> bool:
    return len(text) <= 20 and text.strip().casefold() in MISSING


def _missing_labels(labels: Mapping[str, int], named: Sequence[str]) -> str | None:
    unnamed = sorted(labels.keys() - {*named})
    missing = {label: labels[label] for label in unnamed if _is_missing(label)}
    return f"labels that say a value is missing are classes: {_some(missing)}" if missing else None


def _two_kinds(labels: Mapping[str, int]) -> str | None:
    truth = {label: labels[label] for label in labels if label.casefold() in ("true", "false")}
    numbers = {label: labels[label] for label in labels if number_of(label) is not None}
    if not truth or not numbers:
        return None
    return (
        f"truth values beside numbers as labels, each a class of its own: {_some(truth)}; {_some(numbers)}: if "
        "they mean the same, write them in one way"
    )


def _numbers(labels: Mapping[str, int]) -> str | None:
    if len(labels) <= MOST_NUMBERS or numbers_of(labels) is None:
        return None
    names = ordered(labels)
    return (
        f"{len(labels)} different numbers as labels ({names[0]} to {names[-1]}), each a class of its own: "
        "if they are an amount, group them into a few classes"
    )


def _small_classes(parts: Parts, unmet: Sequence[str], nouns: Nouns) -> list[str]:
    """Name classes of few training texts or no test text; `unmet` are a model's classes that are no text's."""
    train, test = (Counter(column(parts.get(name, ()), "label")) for name in ("train", "test"))
    names = ordered(chain.from_iterable(column(part, "label") for part in parts.values()))
    small = {name: train[name] for name in names if train[name] < FEW} if train else {}
    untested = [*unmet, *(name for name in names if not test[name])]
    total = len(names) + len(unmet)

    def said(classes: Counter[str] | dict[str, int] | list[str], lack: str) -> list[str]:
        has = "has" if len(classes) == 1 else "have"
        lacking = nouns.reword(f"{len(classes)} of {total} classes {has} {lack}")
        return [f"{lacking}: {_some(classes)}"] * bool(classes)

    return [*said(small, f"fewer than {FEW} training texts"), *said(untested, "no test text")]


# --- texts ------------------------------------------------------------------------------------------------


def _missing_texts(texts: Mapping[str, _Texts]) -> str | None:
    missing = {
        name: [text.strip() for text in part if _is_missing(text)] for name, part in texts.items()
    }
    by_split = ", ".join(f"{len(part)} in {name}" for name, part in missing.items() if part)
    counts = Counter(text for part in missing.values() for text in part)
    return (
        f"texts that only say that a value is missing: {by_split} ({_some(counts)})"
        if by_split
        else None
    )


def _nulls(texts: Mapping[str, _Texts]) -> str | None:
    total = sum(map(len, texts.values()))
    if not (texts_with_nul := [text for part in texts.values() for text in part if "\0" in text]):
        return None
    return (
        f"NUL characters in {len(texts_with_nul)} of {total} text{'' if total == 1 else 's'} (first: "
        f"{quoted(texts_with_nul[0])}): was the file written in another encoding?"
    )


def _markup(texts: Mapping[str, _Texts], settings: DataSettings) -> str | None:
    # The rules of a data set may drop tags.
    if settings.dataset is not None or settings.markup == "text":
        return None
    tagged = settings.tokenizer != "sentences" or settings.raw  # or tags are dropped
    examples = [
        example
        for part in texts.values()
        for text in part
        if (example := markup_in(text if tagged else without_markup(text)))
    ]
    return markup_note(len(examples), sum(map(len, texts.values())), examples) if examples else None


def _without_spaces(texts: Mapping[str, _Texts], settings: DataSettings) -> str | None:
    characters = spaces = count = 0
    for text in (text for part in texts.values() for text in part if not text.isascii()):
        if _UNSPACED.search(text) is None:
            continue
        rest = _UNSPACED_RUN.sub("", text)
        of_script = len(text) - len(rest)
        if of_script >= len(_NO_LETTERS.sub("", rest)):
            count += 1
            characters += of_script
            spaces += len(_SPACE_BETWEEN.findall(text))
    if not count or spaces >= LEAST_SPACES * characters:
        return None
    total = sum(map(len, texts.values()))
    unspaced = (
        f"{count} of {total} texts without spaces between their words (as Chinese, Japanese, Thai, Lao, Khmer "
        "and Burmese are written)"
    )
    remedy = "split them into words, put spaces between these and use --tokenizer spaces"
    if count > MOST_WITHOUT_SPACES * total:
        raise InputError(
            f"{settings.source}: expected words with spaces between them, got {unspaced}: a heat map would be "
            f"of whole clauses; {remedy}"
        )
    return f"{unspaced}: a word of theirs is a whole clause; {remedy}"


def _repeated(parts: Parts, nouns: Nouns) -> list[str]:
    hashes = text_hashes(text_key(row) for part in parts.values() for row in part)
    _, number, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    is_repeated = iter(counts[number] > 1)
    places: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for name, part in parts.items():
        for row in part:
            if next(is_repeated):
                places[text_key(row)].append((name, row))
    several = [occurrences for occurrences in places.values() if len(occurrences) > 1]
    again: Counter[str] = Counter()
    for occurrences in several:
        again.update({name: n - 1 for name, n in Counter(name for name, _ in occurrences).items()})
    repeats = [
        f"{again[name]} of {len(part)} in {name}" for name, part in parts.items() if again[name]
    ]
    that_repeat = nouns.reword("texts that repeat another")
    notes = [f"{that_repeat}: {', '.join(repeats)} (kept)"] if repeats else []
    labels = [Counter(row.label for _, row in occurrences) for occurrences in several]
    if conflicting := [i for i, counts in enumerate(labels) if len(counts) > 1]:
        example = " ".join(several[conflicting[0]][0][1].tokens)
        that_differ = nouns.reword("texts that have different labels")
        notes.append(
            f"{that_differ}: {len(conflicting)} (first: "
            f"{quoted(' '.join(example.split()))}, {_some(labels[conflicting[0]])})"
        )
    return notes
