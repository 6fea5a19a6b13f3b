"""Watch a training from inside: attention, output relevance, influence and predictions after some steps.

    FOLDER/0000.parquet   what was recorded in the first epoch; a part is written before the epoch's checkpoint

A training that is resumed writes the parts of unfinished epochs again. The training itself is not touched: it
ends with the same weights, recorded or not.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import Batch, sorted_batches
from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.files.manifest import listed_in
from heedmap.files.tables import read_table, write_table
from heedmap.importance.gradients import influence
from heedmap.measures import levelled, rounding_of
from heedmap.models.trace import Model, Trace

TEXTS = 300  # recorded, of the test split; and of the dev split, for the accuracy alone
EARLY = (0, 10, 50, 100, 150, 200)  # steps that are recorded; then every EVERY
EVERY = 250
SCHEMA = pa.schema(
    [
        ("step", pa.int32()),
        ("split", pa.string()),
        ("row", pa.int32()),
        ("label", pa.int16()),
        ("predicted", pa.int16()),
        ("loss", pa.float32()),
        ("tokens", pa.list_(pa.string())),
        ("attention", pa.list_(pa.float16())),
        ("relevance", pa.list_(pa.float16())),
        ("influence", pa.list_(pa.float16())),
    ]
)


def is_recorded(step: int) -> bool:
    """Return whether the model is recorded after this many steps; the last one of a training always is."""
    return step in EARLY or (step > 0 and step % EVERY == 0)


class Recorder(ABC):
    """Watches a training at a schedule of steps (`is_recorded`); keeps parts in a folder, or in memory."""

    def __init__(self, module: nn.Module, folder: Path | None) -> None:
        self.module, self.folder = module, folder
        self.parts: list[pa.Table] = []
        self._epoch: list[pa.Table] = []

    @abstractmethod
    def read(self, step: int) -> list[pa.Table]:
        """Return what there is to record after some steps, of a model that neither learns nor drops out."""

    def before(self, step: int) -> None:
        """Record the model before a step of the training, if it is one of those."""
        if is_recorded(step):
            self._record(step)

    def after_epoch(self, epoch: int, step: int) -> None:
        """Record the model after an epoch, `step` steps in all, and keep what the epoch's steps recorded."""
        self._record(step)
        part = pa.concat_tables(self._epoch)
        self._epoch = []
        if self.folder is None:
            self.parts.append(part)
        else:
            write_table(self.folder / f"{epoch:04}.parquet", part)

    def _record(self, step: int) -> None:
        module = self.module
        was_training = module.training
        learned = [parameter.requires_grad for parameter in module.parameters()]
        module.eval().requires_grad_(False)
        try:
            self._epoch += self.read(step)
        finally:
            module.train(was_training)
            for parameter, needed in zip(module.parameters(), learned, strict=True):
                parameter.requires_grad_(needed)


class ClassifierRecorder(Recorder):
    """Records a classifier.

    Of each text of a sample of the test split: `attention`, the heat map; `relevance`, the output relevance of
    each token (Snell et al. 2021) for the label less that for the other classes, None without a linear
    read-out: their mean under the attention is the label's logit less the others'; `influence` (see
    `importance.gradients.influence`); `loss`, −log p of the label. Numbers per token have 16 bits. `tokens` are
    there at the first step alone. Of the dev split predictions and loss alone. Tokens whose numbers differ by
    rounding alone have equal ones (`measures.levelled`), so that they tie in every ranking.
    """

    def __init__(
        self, model: Model, test: Split, dev: Split, folder: Path | None, seed: int
    ) -> None:
        assert isinstance(model, nn.Module)
        super().__init__(model, folder)
        self.model = model
        self.splits = {"test": test, "dev": dev}
        rng = np.random.default_rng([seed, *b"dynamics"])
        self.rows = {name: split.drawn(rng, TEXTS) for name, split in self.splits.items()}

    def read(self, step: int) -> list[pa.Table]:
        """Read both samples."""
        return [self._read(step, name) for name in self.splits]

    def _read(self, step: int, name: str) -> pa.Table:
        split, rows = self.splits[name], self.rows[name]
        texts = split.texts
        text_rows: list[dict[str, Any]] = []
        lengths = self.model.lengths([texts[row] for row in rows])
        for part in sorted_batches(lengths, self.model.tokens_at_once):
            batch_rows = rows[part]
            labels = split.labels[batch_rows]
            batch = self.model.batch([texts[row] for row in batch_rows], batch_rows.tolist())
            text_rows += _text_rows(self.model, batch, labels, vectors=name == "test")
        text_rows.sort(key=lambda row: row["row"])
        for row in text_rows:
            row |= {"step": step, "split": name}
            if name == "test" and step == 0:
                row["tokens"] = split.tokens[row["row"]]
        return pa.Table.from_pylist(text_rows, schema=SCHEMA)


def _text_rows(
    model: Model, batch: Batch, labels: NDArray[np.int64], *, vectors: bool
) -> list[dict[str, Any]]:
    """Return a row per text of a batch, with numbers per token if `vectors`."""
    gold = torch.from_numpy(labels)
    trace = model.trace(batch)
    logits = trace.logits.detach().cpu().float()
    losses = functional.cross_entropy(logits, gold, reduction="none")
    rows: list[dict[str, Any]] = [
        {"row": row, "label": label, "predicted": int(text_logits.argmax()), "loss": float(loss)}
        for row, label, text_logits, loss in zip(
            trace.rows.tolist(), labels.tolist(), logits, losses, strict=True
        )
    ]
    if vectors:
        columns = {
            "attention": trace.ranked_heatmap,
            "relevance": relevance_of(trace, gold),
            "influence": influence(model, batch, gold),
        }
        mask = trace.mask.cpu()
        for name, values in columns.items():
            if values is not None:
                halves = values.detach().cpu().half()
                for row, halved, keep in zip(rows, halves, mask, strict=True):
                    row[name] = halved[keep].numpy()
    return rows


def relevance_of(trace: Trace, labels: Tensor) -> Float[Tensor, "B T"] | None:
    """Return each token's relevance for the label, less its mean for the other classes, bias included.

    None without a linear read-out of a single row of weights. What differs by rounding alone is equal.
    """
    readout = trace.readout
    if readout is None or readout.relevance.shape[1] != 1:
        return None
    class_relevance = readout.relevance[:, 0] + readout.bias
    classes = class_relevance.shape[-1]
    index = labels.to(class_relevance.device)[:, None, None].expand(*class_relevance.shape[:2], 1)
    label_relevance = class_relevance.gather(-1, index)[..., 0]
    relevance = label_relevance - (class_relevance.sum(-1) - label_relevance) / (classes - 1)
    largest = class_relevance.abs().amax(-1).masked_fill(~trace.mask, 0.0).amax(-1, keepdim=True)
    return levelled(relevance, trace.mask, rounding_of(largest))


def recorded_in(folder: Path) -> pa.Table | None:
    """Read what was recorded in a training; None if nothing was.

    Raises:
        InputError: a part is damaged.
    """
    parts = listed_in(folder, "*.parquet")
    tables = [read_table(part) for part in parts]
    if any(not table.schema.equals(SCHEMA) for table in tables):
        raise InputError(
            f"{folder}: not what a training records; remove it, or make the run again with --overwrite"
        )
    return pa.concat_tables(tables) if tables else None
