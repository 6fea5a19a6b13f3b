"""Pairs of texts by the names of their columns: which two they are, and which is read first."""

from collections.abc import Sequence

FIRST_IS_TEXT = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("sentence_a", "sentence_b"),
    ("sequence1", "sequence2"),
)
"""Columns of inference and paraphrase, as they are read; attention is over the first."""
FIRST_IS_QUERY = (
    ("query", "passage"),
    ("query", "document"),
    ("query", "sentence"),
    ("question", "passage"),
    ("question", "context"),
    ("question", "document"),
    ("question", "sentence"),
)
"""Columns of relevance and question answering, as they are read; attention is over the second."""
AS_THEY_STAND = (("query", "text"), ("question", "text"))
"""Columns that say less: the one that stands first is read first; attention is over the second of these."""


def guessed_pair(columns: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns of text and query of a table with the usual names of a pair; None without them.

    >>> guessed_pair(["id", "Premise", "hypothesis"]), guessed_pair(["query", "passage"])
    (('Premise', 'hypothesis'), ('passage', 'query'))
    """
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    for names in FIRST_IS_TEXT:
        if by_name.keys() >= {*names}:
            return by_name[names[0]], by_name[names[1]]
    for names in (*FIRST_IS_QUERY, *AS_THEY_STAND):
        if by_name.keys() >= {*names}:
            return by_name[names[1]], by_name[names[0]]
    return None


def query_comes_first(columns: Sequence[str], text: str, query: str) -> bool:
    """Return whether the query is read first: by the usual names of pairs, else by the order of the columns.

    >>> query_comes_first(["passage", "query"], "passage", "query")
    True
    >>> query_comes_first(["a", "b"], "a", "b"), query_comes_first(["a", "b"], "b", "a")
    (False, True)
    """
    text_name, query_name = text.strip().lower(), query.strip().lower()
    for pairs in (FIRST_IS_TEXT, FIRST_IS_QUERY):
        if (query_name, text_name) in pairs:
            return True
        if (text_name, query_name) in pairs:
            return False
    if text not in columns:  # several that are joined
        return False
    return columns.index(query) < columns.index(text)
