"""Fine-tune a pretrained transformer to classify texts, by the recipe of Devlin et al. (2019)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.batches import scatter_rows, sorted_batches
from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.huggingface import inputs
from heedmap.huggingface.limits import longest
from heedmap.huggingface.loading import load_for_training
from heedmap.huggingface.sides import tokenized
from heedmap.settings.training import FineTuneSettings
from heedmap.training.checkpoint import made_with
from heedmap.training.evaluation import EVALUATION_TOKENS, scores_of
from heedmap.training.objective import Objective, seeded

WARM_UP = 0.1  # of all steps


def new_model(
    base: str | Path, classes: Sequence[str], seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a pretrained model to train, and its tokenizer; the seed draws a new head.

    Raises:
        InputError: no such model, or none that can classify texts (see `load_for_training`).
    """
    with seeded(seed):
        return load_for_training(base, list(classes))


class FineTuning(Objective):
    """Fine-tune a transformer to classify texts.

    AdamW, without weight decay on biases and norms; the learning rate rises linearly over the first tenth of
    the steps and falls linearly to 0 over the rest; the mean cross entropy of a batch; the gradient's norm
    clipped at 1. Texts longer than `max_positions`, or than the model reads, are cut, also in the dev split,
    and counted in `left_out`. The best epoch is selected as by `AttentionObjective`.

    Args:
        model: with a head for the labels' classes, from `new_model`.
        tokenizer: the model's.
        train, dev: raw texts; the joined tokens are the text.
        settings: how.

    Raises:
        InputError: `max_positions` leaves no room for a text.
    """

    model: PreTrainedModel
    max_norm = 1.0

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        train: Split,
        dev: Split,
        settings: FineTuneSettings,
    ) -> None:
        limit = limit_of(settings, model, tokenizer)
        learned, self.judged = _Texts(tokenizer, train, limit), _Texts(tokenizer, dev, limit)
        super().__init__(
            model,
            optimizer_of(model, settings),
            learned.lengths,
            learned.batch,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            seed=settings.seed,
            made_with=made_with(settings),
        )
        self.learning_rate = settings.learning_rate
        cut = {"train": learned.cut, "dev": self.judged.cut}
        self.left_out = {
            f"{name}: cut to {limit} positions (kept)": count
            for name, count in cut.items()
            if count
        }

    def on_step(self, step: int, total: int) -> None:
        """Set the step's learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * pace(step, total)

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Float[Tensor, ""]:
        """Return the mean cross entropy."""
        labels = batch.pop("labels")
        return functional.cross_entropy(model(**batch).logits, labels)

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        return scores_of(_logits(self.model, self.judged), self.judged.labels)


def optimizer_of(model: PreTrainedModel, settings: FineTuneSettings) -> torch.optim.Optimizer:
    """Return AdamW, without weight decay on biases and norms."""
    groups = _parameter_groups(model, settings.weight_decay)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


def pace(step: int, total: int) -> float:
    """Return the learning rate's factor: up to 1 over the first tenth of the steps, then down to 0."""
    warm = max(1, round(WARM_UP * total))
    return (step + 1) / warm if step < warm else (total - step) / (total - warm)


@torch.no_grad()
def _logits(model: PreTrainedModel, texts: "_Texts") -> Float[Tensor, "B C"]:
    torch.nn.Module.eval(model)
    batches = sorted_batches(texts.lengths, EVALUATION_TOKENS)
    logits = []
    for rows in batches:
        batch = {name: part.to(model.device) for name, part in texts.batch(rows).items()}
        del batch["labels"]
        logits.append(model(**batch).logits.float().cpu())
    return scatter_rows([torch.from_numpy(rows) for rows in batches], logits)


class _Texts:
    """A split in sub-words, each text or pair cut to `longest` positions."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, split: Split, longest: int) -> None:
        encodings = tokenized(tokenizer, split.texts, truncation=True, max_length=longest)
        # Must come last: a tokenizer keeps the limit of its last call, and would be saved with it.
        self.cut = int((inputs.lengths(tokenizer, split.texts) > longest).sum())
        self.tokenizer, self.labels = tokenizer, split.labels
        self.lengths = np.array([*map(len, encodings)], dtype=np.int64)
        self.rows = [
            {"input_ids": row.ids, "attention_mask": row.attention_mask} for row in encodings
        ]
        if "token_type_ids" in tokenizer.model_input_names:
            for row, encoding in zip(self.rows, encodings, strict=True):
                row["token_type_ids"] = encoding.type_ids

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Tensor]:
        """Return the model's keyword arguments, padded to the longest of the rows, and the labels."""
        padded = self.tokenizer.pad([self.rows[i] for i in rows], return_tensors="pt")
        return {**padded, "labels": torch.from_numpy(self.labels[rows])}


def limit_of(
    settings: FineTuneSettings, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> int:
    """Return how many positions of a text are read, special tokens included.

    Raises:
        InputError: the limit leaves no room for a text.
    """
    special = tokenizer.num_special_tokens_to_add()
    if settings.max_positions <= special:
        raise InputError(
            f"max_positions = {settings.max_positions}: expected more than the {special} special tokens "
            "that the tokenizer adds to every text"
        )
    return min(settings.max_positions, longest(model, tokenizer))


def _parameter_groups(model: PreTrainedModel, weight_decay: float) -> list[dict[str, object]]:
    parameters = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
