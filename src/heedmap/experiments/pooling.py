"""Pool tables whose rows are windows of long texts to one row per text.

The windows of a text are not independent: counted as texts they would make intervals too narrow and weight
texts by length. So findings, figures and their n count texts. A text's number is the mean over the windows
that have one; its probabilities are the mean of its windows', and its predicted class is the likeliest by
them. The dimensions of a head's freedom are those of the text's longest window. The tables themselves keep
one row per window.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments.output_spread import DEVIATION, MEAN, TEXTS

TEXT = "text"  # column of `instances` that numbers the texts; without it every row is a whole text
_DIMENSIONS = ("positions", "rank", "free", "free_on_simplex")
# Tables in which the 0 of a one-word window means nothing: it has no weights to shuffle or replace.
_OF_WEIGHTS = ("permutation", "adversary", "smallest_change")
_OF_TEXT = ("amount", MEAN, DEVIATION, TEXTS)  # columns of `instances` that windows of a text share
_WITHIN = ["view", "layer", "head", "class"]


def by_text(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables with one row per text (and layer, head, map or class); unchanged where rows are whole
    texts.

    Of the list columns `probabilities` are kept, and `tokens` and `importance`: the windows' lists joined.
    """
    instances = tables["instances"]
    if TEXT not in instances.column_names:
        return dict(tables)
    texts = instances[TEXT].to_numpy()
    short = instances["n_tokens"].to_numpy() < 2
    whole = _instances(instances.to_pandas())
    tables_by_text = {"instances": pa.Table.from_pandas(whole, preserve_index=False)}
    for name, table in tables.items():
        if name == "instances":
            continue
        if "row" not in table.column_names:  # of no text
            tables_by_text[name] = table
            continue
        frame = _numbers(table)
        rows = frame["row"].to_numpy(dtype=np.int64)
        if name in _OF_WEIGHTS:
            frame.loc[short[rows]] = np.nan
        frame["row"] = texts[rows]
        keys = [column for column in _WITHIN if column in table.column_names]
        # After the numbers: a map's view is a name, and the mean over heads is null.
        for column in keys:
            frame[column] = table[column].to_pandas()
        pooled = _pooled(frame, keys)
        for column in ("predicted", "n_tokens", "max_attention"):
            if column in pooled:
                pooled[column] = whole[column].to_numpy()[pooled["row"].astype(int)]
        tables_by_text[name] = _table(pooled)
        if "importance" in table.column_names:
            joined = _joined(table["importance"], texts[table["row"].to_numpy()])
            tables_by_text[name] = tables_by_text[name].append_column("importance", joined)
    return tables_by_text


def _instances(frame: pd.DataFrame) -> pd.DataFrame:
    probabilities = np.stack(frame["probabilities"].to_list())
    groups = frame.groupby(TEXT)
    shares = np.stack([probabilities[rows].mean(0) for rows in groups.indices.values()])
    sizes = groups.size()
    keys = [
        key.rsplit("#", 1)[0] if has_windows else key
        for key, has_windows in zip(groups["key"].first(), sizes > 1, strict=True)
    ]
    means = groups[["n_tokens", "max_attention", "entropy"]].mean().reset_index(drop=True)
    return pd.DataFrame(
        {
            "row": range(len(sizes)),
            "key": keys,
            "tokens": [np.concatenate(list(lists)) for _, lists in groups["tokens"]],
            "label": groups["label"].first().to_numpy(),
            "predicted": shares.argmax(1),
            "probabilities": list(shares),
            **means,
            **{name: groups[name].first().to_numpy() for name in _OF_TEXT if name in frame},
        }
    )


def _numbers(table: pa.Table) -> pd.DataFrame:
    """Return the numeric columns, null as NaN."""
    single = [
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_boolean(field.type)
    ]
    numbers: pd.DataFrame = table.select(single).to_pandas().astype(np.float64)
    return numbers


def _pooled(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    columns = list(frame.columns)
    for name in (column for column in columns if column.startswith("p_")):
        frame[name] = _z(frame[name], frame["tau_" + name.removeprefix("p_")])
    groups = frame.groupby(["row", *keys], sort=True, dropna=False)
    means = groups.mean()
    for name in (column for column in columns if column.startswith("p_")):
        # Stouffer's method: windows share no word, so their z values add up.
        count = groups[name].count()
        means[name] = 2 * stats.norm.sf((means[name] * np.sqrt(count)).abs())
    dimensions = [name for name in _DIMENSIONS if name in columns]
    if dimensions:
        longest = frame.sort_values("positions", kind="stable")
        means[dimensions] = longest.groupby(["row", *keys], sort=True, dropna=False)[
            dimensions
        ].last()
    pooled: pd.DataFrame = means.reset_index()[columns]
    return pooled


def _z(p: "pd.Series[float]", tau: "pd.Series[float]") -> "pd.Series[float]":
    """Return the standard normal deviate of a two-sided p, with the sign of tau."""
    tiny = np.finfo(np.float64).tiny
    return pd.Series(np.sign(tau) * stats.norm.isf(p.clip(lower=tiny) / 2), index=p.index)


def _table(frame: pd.DataFrame) -> pa.Table:
    whole = {
        name: frame[name].astype("Int64")
        for name in ("row", "layer", "head", "class")
        if name in frame
    }
    return pa.Table.from_pandas(frame.assign(**whole), preserve_index=False)


def _joined(lists: pa.ChunkedArray, texts: NDArray[np.int64]) -> pa.Array:
    """Join the windows' lists per text; null where all of them are."""
    joined: list[list[float] | None] = [None] * (int(texts.max()) + 1)
    for text, values in zip(texts, lists.to_pylist(), strict=True):
        if values is not None:
            joined[text] = [*(joined[text] or []), *values]
    return pa.array(joined, lists.type)
