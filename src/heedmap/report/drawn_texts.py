"""The texts that report and figures draw: all of them, or some of a large audit's."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.pooling import TEXT
from heedmap.experiments.text_tables import answer_probabilities
from heedmap.files.tables import release_mapped
from heedmap.report.text_data import chosen_rows

ALL = 50_000  # texts up to which all of them are drawn: more would fill the memory, and no figure shows them


def with_drawn_texts(audit: AuditResult) -> AuditResult:
    """Return an audit whose tables have the texts that are drawn: of more than ALL, those of `chosen_rows`.

    Of a text in windows all are drawn or none. Rows and texts are numbered anew. The findings stay those of all
    texts.
    """
    instances = audit.tables["instances"]
    if instances.num_rows <= ALL:
        return audit
    numbers = [instances[name].to_numpy() for name in ("n_tokens", "max_attention", "entropy")]
    rows = np.array(chosen_rows([answer_probabilities(instances), *numbers], []))
    in_windows = TEXT in instances.column_names
    if in_windows:
        texts = instances[TEXT].to_numpy()
        rows = np.flatnonzero(np.isin(texts, texts[rows]))
    tables = {
        name: _of_rows(table, rows) if "row" in table.column_names else table
        for name, table in audit.tables.items()
    }
    if in_windows:
        place = instances.column_names.index(TEXT)
        numbered = pa.array(np.unique(texts[rows], return_inverse=True)[1])
        tables["instances"] = tables["instances"].set_column(place, TEXT, numbered)
    return replace(audit, tables=tables)


def _of_rows(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Return what a table says of some texts, given in ascending order, with these numbered from 0."""
    parts = []
    for batch in table.to_batches():
        of_batch = batch["row"].to_numpy()
        is_drawn = np.isin(of_batch, rows)
        numbers = pa.array(
            np.searchsorted(rows, of_batch[is_drawn]), table.schema.field("row").type
        )
        drawn = pa.Table.from_batches([batch.filter(pa.array(is_drawn))])
        parts.append(drawn.set_column(table.column_names.index("row"), "row", numbers))
        release_mapped()
    return pa.concat_tables(parts).cast(table.schema)
