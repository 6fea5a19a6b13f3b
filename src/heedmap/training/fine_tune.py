"""Fine-tuning a pretrained transformer to classify texts, by the recipe of Devlin et al. (2019)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.batches import bucketed_batches, scatter_rows, sorted_batches
from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.huggingface import inputs
from heedmap.huggingface.loading import frozen, load_for_training, longest
from heedmap.settings import FineTuneSettings
from heedmap.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from heedmap.training.loop import (
    EVALUATION_TOKENS,
    Report,
    Trained,
    diverged,
    loader,
    note,
    scores_of,
)

WARM_UP = 0.1  # of all steps
MAX_NORM = 1.0  # of the gradient


def new_model(
    base: str | Path, classes: Sequence[str], seed: int
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A pretrained model to train, and its tokenizer; where its head is new, the seed decides it.

    Raises:
        InputError: no such model, or none that can classify texts (see `load_for_training`).
    """
    with _seeded(seed, torch.device("cpu")):
        return load_for_training(base, list(classes))


def fine_tune(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    train: Split,
    dev: Split,
    settings: FineTuneSettings,
    checkpoint: Path | None = None,
    report: Report = lambda done, total, text: None,
) -> Trained:
    """Train in place, and leave the weights of the best dev epoch in the model, frozen.

    AdamW, without weight decay on biases and norms; the learning rate rises over the first tenth of the
    steps and falls to 0 over the rest, both linearly; the mean cross entropy of a batch, the gradient's
    norm at most 1; batches of texts of similar length in random order. Texts longer than `max_positions`
    or than the model reads are cut, in the dev split too, and counted. The best epoch is that of
    `train_classifier`.

    Args:
        model: with a head for the labels' classes, from `new_model`.
        tokenizer: the model's.
        train, dev: raw texts, their tokens joined give the text.
        settings: how.
        checkpoint: where every epoch is saved; a later call goes on after the last one, to the same
            weights as an uninterrupted training, bit for bit.
        report: called with steps done, steps in all and a text.

    Raises:
        InputError: the training diverged, a damaged checkpoint, or `max_positions` that leave no place
            for a text.
    """
    from accelerate import Accelerator

    accelerator = Accelerator()
    limit = limit_of(settings, model, tokenizer)
    learned, judged = _Texts(tokenizer, train, limit), _Texts(tokenizer, dev, limit)
    optimizer = optimizer_of(model, settings)
    model.to(accelerator.device)
    progress = load_checkpoint(checkpoint, model, optimizer, settings) if checkpoint else Progress()
    model, optimizer = accelerator.prepare(model, optimizer)
    bare: PreTrainedModel = accelerator.unwrap_model(model)
    steps = -(-len(train) // settings.batch_size)
    total = steps * settings.epochs
    for epoch in range(progress.epochs_done, settings.epochs):
        rng = np.random.default_rng([settings.seed, epoch])
        order = bucketed_batches(learned.lengths, settings.batch_size, rng)
        batches = accelerator.prepare(loader(learned.batch, order))
        model.train()
        # Dropout draws from torch's global state: each epoch has a seed of its own, so that a resumed
        # training draws what an uninterrupted one does.
        with _seeded(int(rng.integers(2**63)), bare.device):
            for step, batch in enumerate(batches, epoch * steps):
                for group in optimizer.param_groups:
                    group["lr"] = settings.learning_rate * pace(step, total)
                optimizer.zero_grad()
                labels = batch.pop("labels")
                loss = functional.cross_entropy(model(**batch).logits, labels)
                if not torch.isfinite(loss):
                    raise diverged()
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), MAX_NORM)
                optimizer.step()
                report(step + 1, total, f"epoch {epoch + 1} of {settings.epochs}")
        note(progress, scores_of(_logits(bare, judged), dev.labels), bare)
        if checkpoint and accelerator.is_main_process:
            save_checkpoint(checkpoint, progress, bare, optimizer, settings)
    assert progress.best_epoch is not None
    bare.load_state_dict(progress.best)
    frozen(bare)
    cut = {f"train: cut to {limit} positions (kept)": learned.cut}
    cut[f"dev: cut to {limit} positions (kept)"] = judged.cut
    left_out = {reason: count for reason, count in cut.items() if count}
    threads = sorted(set(progress.threads))
    return Trained(progress.scores, progress.best_epoch, left_out=left_out, threads=threads)


def optimizer_of(model: PreTrainedModel, settings: FineTuneSettings) -> torch.optim.Optimizer:
    """AdamW, without weight decay on biases and norms."""
    groups = _parameter_groups(model, settings.weight_decay)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


def pace(step: int, total: int) -> float:
    """The learning rate's share at a step: up to 1 over the first tenth of the steps, then down to 0."""
    warm = max(1, round(WARM_UP * total))
    return (step + 1) / warm if step < warm else (total - step) / (total - warm)


@torch.no_grad()
def _logits(model: PreTrainedModel, texts: "_Texts") -> Float[Tensor, "N C"]:
    torch.nn.Module.eval(model)
    batches = sorted_batches(texts.lengths, EVALUATION_TOKENS)
    logits = []
    for rows in batches:
        batch = {name: part.to(model.device) for name, part in texts.batch(rows).items()}
        del batch["labels"]
        logits.append(model(**batch).logits.float().cpu())
    return scatter_rows([torch.from_numpy(rows) for rows in batches], logits)


class _Texts:
    """A split in sub-words, each text cut to `longest` positions."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, split: Split, longest: int) -> None:
        texts = ["".join(words) for words in split.tokens]
        found = tokenizer(
            texts,
            truncation=True,
            max_length=longest,
            return_attention_mask=True,
            verbose=False,
        )
        # Asked last: a tokenizer keeps the limit it was called with, and would be saved with it.
        self.cut = int((inputs.lengths(tokenizer, split.tokens) > longest).sum())
        self.tokenizer, self.labels = tokenizer, split.labels
        self.lengths = np.array([len(ids) for ids in found["input_ids"]], dtype=np.int64)
        self.rows = [{name: part[i] for name, part in found.items()} for i in range(len(split))]

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Tensor]:
        """What the model is called with, padded to the longest of the rows; and the labels."""
        padded = self.tokenizer.pad([self.rows[i] for i in rows], return_tensors="pt")
        return {**padded, "labels": torch.from_numpy(self.labels[rows])}


def limit_of(
    settings: FineTuneSettings, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> int:
    """How many positions of a text are trained on, special tokens included.

    Raises:
        InputError: none is left for a text.
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


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """While it lasts, torch's global generators start from the seed; afterwards they are as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
