"""One text outside any corpus, as the tokens that a corpus with these settings makes of it."""

from collections.abc import Sequence

import numpy as np

from heedmap.data.catalog import CATALOG
from heedmap.data.corpus import Split
from heedmap.data.embedded import STORIES
from heedmap.data.pair_sides import audited_sides
from heedmap.data.rows import ColumnSpec, Row
from heedmap.data.splits import within_limits
from heedmap.data.text_values import written_text
from heedmap.data.tokens import tokenizer_of
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings


def one_text(
    settings: DataSettings, classes: Sequence[str], text: str, query: str | None = None
) -> tuple[Split, list[str]]:
    """Return a split of one text, or of one pair, and notes on what was changed. Its label means nothing.

    Raises:
        InputError: a text or a query without a token or with half characters, or a text without a possible
            answer.
    """
    for written in (text, query or ""):
        # What a command line makes of other bytes.
        if any("\ud800" <= character <= "\udfff" for character in written):
            raise InputError(f"expected text in UTF-8, got {written!r:.60}; convert it")
    name = settings.source if settings.source in STORIES else settings.dataset
    spec = CATALOG[name] if name else None
    columns = spec.columns if spec else ColumnSpec()
    tokenize = columns.tokenize or tokenizer_of(settings)
    text = written_text(text, "text", settings, columns)
    if query is not None:
        query = written_text(query, "query", settings, columns)
    row = Row("text", tokenize(text), "", query=None if query is None else tokenize(query))
    unit = "sentence" if settings.tokenizer == "sentences" else "word"
    if not row.tokens:
        raise InputError(f"expected a text of one {unit} at least, got none")
    if row.query == []:
        raise InputError("expected a query of one word at least, got none")
    notes, size = [], len(row.tokens)
    if size < settings.min_tokens:
        notes.append(
            f"shorter than the texts that the model was given: {size} of at least {settings.min_tokens} {unit}s"
        )
    (row,), _ = within_limits([row], settings.model_copy(update={"min_tokens": 1}))
    if len(row.tokens) < size:
        notes.append(
            f"longer than the texts that the model was given: cut to its first {len(row.tokens)} of {size} "
            f"{unit}s"
        )
    allowed = None
    if spec is not None and spec.candidates is not None:
        allowed = np.isin(classes, spec.candidates(row.tokens))[None]
        if not allowed.any():
            raise InputError(
                "expected a text in which a possible answer occurs, got none; the answers are such as "
                f"{', '.join(classes[:3])}"
            )
    split = Split(
        [row.key],
        [row.tokens],
        np.zeros(1, dtype=np.int64),
        queries=None if row.query is None else [row.query],
        allowed=allowed,
    )
    return audited_sides(split, settings)[0], notes
