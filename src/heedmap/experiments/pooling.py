"""One text, one instance: tables whose rows are windows of long texts, pooled to one row per text.

The windows of a text are no independent draws: counted as texts they would make every interval too narrow
and weigh a text by its length. So the findings, their figures and their n are of texts, by one rule: a
text's number is the mean over those of its windows that have one; its probabilities are the mean of its
windows', and its predicted class is the one that is likeliest by them. The dimensions of a head's freedom
are those of the text's longest window. The tables themselves keep a row per window.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

TEXT = (
    "text"  # the column of `instances` that numbers the texts; without it every row is a whole one
)
_DIMENSIONS = ("positions", "rank", "free", "free_on_simplex")
# Of a window of one word there is nothing to shuffle or replace: its 0 is no number of the text.
_OF_WEIGHTS = ("permutation", "adversary")
_WITHIN = ["view", "layer", "head"]


def by_text(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables with one row per text (and layer, head or map); the same where every row is a whole text.

    Of the lists only `probabilities` and `importance` (those of the windows one after the other) are kept.
    """
    instances = tables["instances"]
    if TEXT not in instances.column_names:
        return dict(tables)
    texts = instances[TEXT].to_numpy()
    short = instances["n_tokens"].to_numpy() < 2
    whole = _instances(instances.to_pandas())
    found = {"instances": pa.Table.from_pandas(whole, preserve_index=False)}
    for name, table in tables.items():
        if name == "instances":
            continue
        frame = _numbers(table)
        rows = frame["row"].to_numpy(dtype=np.int64)
        if name in _OF_WEIGHTS:
            frame.loc[short[rows]] = np.nan
        frame["row"] = texts[rows]
        within = [column for column in _WITHIN if column in table.column_names]
        for (
            column
        ) in within:  # after the numbers: a map's view is a name, and the mean over heads is null
            frame[column] = table[column].to_pandas()
        pooled = _pooled(frame, within)
        for column in ("predicted", "n_tokens", "max_attention"):
            if column in pooled:
                pooled[column] = whole[column]
        found[name] = _table(pooled)
        if "importance" in table.column_names:
            joined = _joined(table["importance"], texts[table["row"].to_numpy()])
            found[name] = found[name].append_column("importance", joined)
    return found


def _instances(frame: pd.DataFrame) -> pd.DataFrame:
    probabilities = np.stack(frame["probabilities"].to_list())
    of = frame.groupby(TEXT)
    shares = np.stack([probabilities[rows].mean(0) for rows in of.indices.values()])
    sizes = of.size()
    keys = [
        key.rsplit("#", 1)[0] if many else key
        for key, many in zip(of["key"].first(), sizes > 1, strict=True)
    ]
    means = of[["n_tokens", "max_attention", "entropy"]].mean().reset_index(drop=True)
    return pd.DataFrame(
        {
            "row": range(len(sizes)),
            "key": keys,
            "label": of["label"].first().to_numpy(),
            "predicted": shares.argmax(1),
            "probabilities": list(shares),
            **means,
        }
    )


def _numbers(table: pa.Table) -> pd.DataFrame:
    """The columns that hold a number, null as NaN."""
    single = [
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_boolean(field.type)
    ]
    found: pd.DataFrame = table.select(single).to_pandas().astype(np.float64)
    return found


def _pooled(frame: pd.DataFrame, within: list[str]) -> pd.DataFrame:
    columns = list(frame.columns)
    for name in (column for column in columns if column.startswith("p_")):
        frame[name] = _z(frame[name], frame["tau_" + name.removeprefix("p_")])
    groups = frame.groupby(["row", *within], sort=True, dropna=False)
    found = groups.mean()
    for name in (column for column in columns if column.startswith("p_")):
        # Stouffer: the windows' z of a text add up; windows share no word.
        count = groups[name].count()
        found[name] = 2 * stats.norm.sf((found[name] * np.sqrt(count)).abs())
    dimensions = [name for name in _DIMENSIONS if name in columns]
    if dimensions:
        longest = frame.sort_values("positions", kind="stable")
        found[dimensions] = longest.groupby(["row", *within], sort=True, dropna=False)[
            dimensions
        ].last()
    pooled: pd.DataFrame = found.reset_index()[columns]
    return pooled


def _z(p: "pd.Series[float]", tau: "pd.Series[float]") -> "pd.Series[float]":
    """The standard normal deviate of a two-sided p, with the sign of tau."""
    tiny = np.finfo(np.float64).tiny
    return pd.Series(np.sign(tau) * stats.norm.isf(p.clip(lower=tiny) / 2), index=p.index)


def _table(frame: pd.DataFrame) -> pa.Table:
    whole = {
        name: frame[name].astype("Int64") for name in ("row", "layer", "head") if name in frame
    }
    return pa.Table.from_pandas(frame.assign(**whole), preserve_index=False)


def _joined(lists: pa.ChunkedArray, texts: NDArray[np.int64]) -> pa.Array:
    """The windows' lists one after the other; null where all of them are."""
    found: list[list[float] | None] = [None] * (int(texts.max()) + 1)
    for text, values in zip(texts, lists.to_pylist(), strict=True):
        if values is not None:
            found[text] = [*(found[text] or []), *values]
    return pa.array(found, lists.type)
