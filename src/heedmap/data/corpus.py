"""A corpus: splits of tokenised, labelled texts, and a count of everything that was left out."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data import files
from heedmap.data.tokens import TOKENIZERS, pieces
from heedmap.errors import InputError
from heedmap.settings import DataSettings

SPLITS = ("train", "dev", "test")
TEXT_COLUMNS = ("text", "sentence", "review", "content", "document")
LABEL_COLUMNS = ("label", "labels", "sentiment", "class", "category", "stars")
EMBEDDED = {"reviews": False, "reviews-stars": True}
# One file without splits: a fifth of each class is the test split, 15 % of the rest the dev split.
TEST_SHARE, DEV_SHARE = 0.20, 0.15


@dataclass(frozen=True)
class Split:
    """Labelled texts. `keys` are the rows' own ids, so that a number can be traced to its text."""

    keys: list[str]
    tokens: list[list[str]]
    labels: NDArray[np.int64]
    rationale: list[NDArray[np.bool_]] | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "Split":
        """Some of the rows, in the order given."""
        rationale = None if self.rationale is None else [self.rationale[i] for i in rows]
        return Split(
            [self.keys[i] for i in rows],
            [self.tokens[i] for i in rows],
            self.labels[np.asarray(rows, dtype=np.int64)],
            rationale,
        )


@dataclass(frozen=True)
class Corpus:
    """Splits by name, the classes' names in the order of their numbers, what was left out and why."""

    name: str
    classes: list[str]
    splits: dict[str, Split]
    settings: DataSettings
    left_out: dict[str, int] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """A hash of all tokens and labels: the same corpus gives the same."""
        digest = hashlib.sha256(json.dumps(self.classes).encode())
        for name in (name for name in SPLITS if name in self.splits):
            split = self.splits[name]
            digest.update(json.dumps([split.keys, split.tokens]).encode())
            digest.update(split.labels.tobytes())
        return digest.hexdigest()[:16]


@dataclass
class _Row:
    key: str
    tokens: list[str]
    label: str
    rationale: NDArray[np.bool_] | None = None


def load(
    source: str | Path,
    *,
    text: str | None = None,
    label: str | None = None,
    tokenizer: str = "words",
    min_tokens: int = 1,
    max_tokens: int = 512,
    seed: int = 0,
) -> Corpus:
    """Read a corpus.

    Args:
        source: a CSV, JSONL or Parquet file (.gz too); a folder with train/dev/test files; the name
            of a data set on the Hugging Face Hub; or an embedded corpus, `reviews` (two classes) or
            `reviews-stars` (five).
        text, label: the columns' names; guessed where not given.
        tokenizer: `words` for raw text, `spaces` for text that is tokenised already.
        min_tokens: texts with fewer tokens are left out, and counted.
        max_tokens: longer texts are cut, and counted.
        seed: of the split, where the source has none.

    Raises:
        InputError: what was expected, what came and what to do.
    """
    settings = DataSettings.of(
        source=str(source),
        text=text,
        label=label,
        tokenizer=tokenizer,
        min_tokens=min_tokens,
        max_tokens=max_tokens,
        seed=seed,
    )
    return load_corpus(settings)


def load_corpus(settings: DataSettings, outputs: Sequence[str] = ()) -> Corpus:
    """Read the corpus that the settings describe (see `load`).

    Where it is not for training, `outputs` names the classes of the model that will read it.
    """
    left_out: Counter[str] = Counter()
    if settings.source in EMBEDDED:
        parts = {"all": _embedded_rows(settings)}
    else:
        parts = _read_parts(settings, left_out)
    if not settings.training and settings.source not in EMBEDDED:
        parts = {name: rows for name, rows in parts.items() if name in _to_test(parts)}
        unread = tuple(f"{name}:" for name in SPLITS if name not in parts)
        left_out = Counter({why: n for why, n in left_out.items() if not why.startswith(unread)})
    parts = {name: _kept(rows, settings, left_out) for name, rows in parts.items()}
    if not settings.training:
        return _to_audit(parts, settings, left_out, outputs)
    splits = _complete(parts, settings)
    classes = _classes(row.label for row in splits["train"])
    gone = "; ".join(f"{reason}: {count}" for reason, count in left_out.items()) or "none"
    if not splits["train"]:
        raise InputError(
            f"{settings.source}: expected rows with a text and a label, none are left (left out: {gone})"
        )
    if len(classes) < 2:
        raise InputError(
            f"{settings.source}: expected at least two classes in the training split, "
            f"got {len(classes)} ({', '.join(classes) or 'no rows'}); check the label column"
        )
    number = {name: i for i, name in enumerate(classes)}
    arrays = {}
    for name in SPLITS:
        known = [row for row in splits[name] if row.label in number]
        if unseen := len(splits[name]) - len(known):
            left_out[f"{name}: class never seen in training"] += unseen
        if not known and splits[name]:
            raise InputError(
                f"{settings.source}: no {name} label occurs in the training split: expected "
                f"{', '.join(classes[:8])}, got {', '.join(sorted({r.label for r in splits[name]})[:8])}"
            )
        if not known:
            raise InputError(
                f"{settings.source}: no rows for the {name} split; expected enough rows for train, "
                f"dev and test, got {sum(map(len, splits.values()))} in all; give more"
            )
        arrays[name] = _split_of(known, number)
    return Corpus(_name(settings.source), classes, arrays, settings, dict(left_out))


def _to_test(parts: Mapping[str, object]) -> list[str]:
    """The test split; without one, everything in a file without splits; without that, dev or train."""
    return [next(name for name in ("test", "all", "dev", "train") if name in parts)]


def _to_audit(
    parts: dict[str, list[_Row]],
    settings: DataSettings,
    left_out: Counter[str],
    outputs: Sequence[str],
) -> Corpus:
    rows = _complete(parts, settings)["test"] if settings.source in EMBEDDED else []
    rows = rows or [row for part in parts.values() for row in part]
    if not rows:
        gone = "; ".join(f"{reason}: {count}" for reason, count in left_out.items()) or "none"
        raise InputError(
            f"{settings.source}: expected rows with a text and a label, none are left (left out: {gone})"
        )
    number = _match(settings, sorted({row.label for row in rows}), outputs)
    return Corpus(
        _name(settings.source),
        list(outputs),
        {"test": _split_of(rows, number)},
        settings,
        dict(left_out),
    )


def _match(settings: DataSettings, labels: Sequence[str], outputs: Sequence[str]) -> dict[str, int]:
    """Which output of a model each label of the data means: by its name, or by its number from 0 up."""
    given = settings.classes
    if given is not None and len(given) != len(outputs):
        raise InputError(
            f"--classes: expected {len(outputs)} names for the model's outputs "
            f"({', '.join(outputs)}), got {len(given)} ({', '.join(given)})"
        )
    names = [name.lower() for name in (given or outputs)]
    if given is not None and len(set(names)) < len(names):
        raise InputError(f"--classes: expected different names, got {', '.join(given)}")
    numbers = [str(i) for i in range(len(outputs))]
    for known in (names, *([] if given else [numbers])):
        if all(label.lower() in known for label in labels):
            return {label: known.index(label.lower()) for label in labels}
    raise InputError(
        f"{settings.source}: expected the model's {len(outputs)} classes ({', '.join(given or outputs)}) or "
        f"their numbers as labels, got {', '.join(labels[:8])}{' …' if len(labels) > 8 else ''}; say how the "
        "data spell the model's outputs, in their order: --classes NAME,NAME"
    )


def _name(source: str) -> str:
    stem = Path(source).name.removesuffix(".gz")
    return re.sub(r"\.(csv|tsv|jsonl|ndjson|json|parquet)$", "", stem) or "corpus"


def _split_of(rows: list[_Row], number: Mapping[str, int]) -> Split:
    masks = [row.rationale for row in rows if row.rationale is not None]
    return Split(
        [row.key for row in rows],
        [row.tokens for row in rows],
        np.array([number[row.label] for row in rows], dtype=np.int64),
        masks if len(masks) == len(rows) else None,
    )


def _embedded_rows(settings: DataSettings) -> list[_Row]:
    from heedmap.data.reviews import reviews

    # The texts are always the same ones; the seed only draws the split.
    generated = reviews(stars=EMBEDDED[settings.source])
    return [
        _Row(
            f"reviews-{i}",
            pieces(" ".join(r.tokens), "spaces") if settings.raw else list(r.tokens),
            r.label,
            np.array(r.rationale, dtype=bool),
        )
        for i, r in enumerate(generated)
    ]


def _read_parts(settings: DataSettings, left_out: Counter[str]) -> dict[str, list[_Row]]:
    path = Path(settings.source)
    if path.is_dir() and (found := files.split_files(path)):
        read = {name: files.read_rows(file) for name, file in found.items()}
    elif path.is_dir() and not any(files.kind_of(file) for file in path.glob("*/*")):
        there = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
        raise InputError(
            f"{path}: expected train.csv, train.jsonl or train.parquet (dev and test beside it if there "
            f"are any), found {there}"
        )
    elif not path.is_dir() and (path.exists() or files.kind_of(path) or path.is_absolute()):
        read = {"all": files.read_rows(path)}
    else:
        read = {}
        for name, rows in files.read_hub(settings.source).items():
            split = files.SPLIT_NAMES.get(name)
            if split is None:
                left_out[f"{name}: not a train, dev or test split"] += len(rows)
            else:
                read[split] = rows
        if "train" not in read:
            raise InputError(f"{settings.source}: expected a train split, found none")
    parts: dict[str, list[_Row]] = {}
    for name, rows in read.items():
        columns = list(rows.column_names)
        split_column = _find(columns, None, ("split", "exp_split")) if name == "all" else None
        for part, row in _rows(rows, name, split_column, settings, left_out):
            parts.setdefault(part, []).append(row)
    return parts


def _rows(
    rows: Any, part: str, split_column: str | None, settings: DataSettings, left_out: Counter[str]
) -> Iterable[tuple[str, _Row]]:
    columns = list(rows.column_names)
    text = _find(columns, settings.text, TEXT_COLUMNS)
    label = _find(columns, settings.label, LABEL_COLUMNS)
    for what, found, option, guesses in (
        ("text", text, "--text-column", TEXT_COLUMNS),
        ("label", label, "--label-column", LABEL_COLUMNS),
    ):
        if found is None:
            wanted = getattr(settings, what) or " / ".join(guesses)
            raise InputError(
                f"{settings.source}: no {what} column ({wanted}); the columns are "
                f"{', '.join(columns)}; name it with {option}"
            )
    names = getattr(rows.features[label], "names", None)  # a ClassLabel of the Hub
    tokenize = _tokenize(settings)
    keys = rows["id"][:] if "id" in columns else range(len(rows))
    parts = rows[split_column][:] if split_column else [part] * len(rows)
    for key, value, answer, said in zip(keys, rows[text][:], rows[label][:], parts, strict=True):
        where = files.SPLIT_NAMES.get(str(said).lower(), said)
        if where not in (*SPLITS, "all"):
            left_out[f"split column says {where!r}"] += 1
        elif isinstance(value, list | dict) or isinstance(answer, list | dict):
            raise InputError(
                f"{settings.source}, row {key}: expected a text and a label, got "
                f"{text} = {value!r:.40}, {label} = {answer!r:.40}"
            )
        elif answer is None or (isinstance(answer, float) and math.isnan(answer)):
            left_out[f"{where}: label missing"] += 1
        else:
            tokens = [] if value is None else tokenize(str(value))
            name = names[answer] if names else _label_text(answer)
            yield where, _Row(str(key), tokens, name)


def _tokenize(settings: DataSettings) -> Callable[[str], list[str]]:
    if settings.raw:
        return lambda text: pieces(text, settings.tokenizer)
    return TOKENIZERS[settings.tokenizer]


def _find(columns: list[str], wanted: str | None, guesses: Sequence[str]) -> str | None:
    if wanted is not None:
        return wanted if wanted in columns else None
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    return next((by_name[guess] for guess in guesses if guess in by_name), None)


def _label_text(value: object) -> str:
    # A whole column turns into floats where one label is missing: 1.0 is the class 1.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _classes(labels: Iterable[str]) -> list[str]:
    found = set(labels)
    try:
        return sorted(found, key=float)
    except ValueError:
        return sorted(found)


def _kept(rows: list[_Row], settings: DataSettings, left_out: Counter[str]) -> list[_Row]:
    kept = []
    for row in rows:
        if not row.tokens:
            left_out["empty text"] += 1
        elif len(row.tokens) < settings.min_tokens:
            left_out[f"fewer than {settings.min_tokens} tokens"] += 1
        else:
            if len(row.tokens) > settings.max_tokens:
                left_out[f"cut to {settings.max_tokens} tokens (kept)"] += 1
                row.tokens = row.tokens[: settings.max_tokens]
                if row.rationale is not None:
                    row.rationale = row.rationale[: settings.max_tokens]
            kept.append(row)
    return kept


def _complete(parts: dict[str, list[_Row]], settings: DataSettings) -> dict[str, list[_Row]]:
    """Train, dev and test: those that came, the missing ones drawn from the training rows."""
    train = [*parts.get("all", []), *parts.get("train", [])]
    rng = np.random.default_rng([settings.seed, 0x5B117])
    test = parts.get("test")
    if test is None:
        test, train = _draw(train, TEST_SHARE, rng)
    dev = parts.get("dev")
    if dev is None:
        dev, train = _draw(train, DEV_SHARE, rng)
    return {"train": train, "dev": dev, "test": test}


def _draw(
    rows: list[_Row], share: float, rng: np.random.Generator
) -> tuple[list[_Row], list[_Row]]:
    """A random share of every class, rounded to whole rows, and the rest; both in file order."""
    drawn: set[int] = set()
    for name in sorted({row.label for row in rows}):
        members = np.array([i for i, row in enumerate(rows) if row.label == name])
        drawn.update(rng.permutation(members)[: round(share * len(members))].tolist())
    return (
        [row for i, row in enumerate(rows) if i in drawn],
        [row for i, row in enumerate(rows) if i not in drawn],
    )
