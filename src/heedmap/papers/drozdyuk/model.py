"""The classifiers whose attention is changed: a small transformer trained from scratch, or any other."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel
from transformers.modeling_outputs import SequenceClassifierOutput

from heedmap.data.batches import scatter_rows, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import PAD, Vocabulary
from heedmap.errors import InputError
from heedmap.huggingface.attention_hook import NAME, visiting
from heedmap.huggingface.interventions import Activation, Chain, Intervention
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.training.fit import fit
from heedmap.training.objective import Diverged, Objective, Progress, drawing_from, seeded

EVALUATION_TOKENS = 8192


@dataclass(frozen=True)
class Texts:
    """Texts as token numbers, special tokens included, and their classes."""

    ids: list[NDArray[np.int64]]
    labels: NDArray[np.int64]
    padding: int = PAD

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text."""
        return np.array([len(text) for text in self.ids], dtype=np.int64)

    def inputs(
        self, rows: Sequence[int] | NDArray[np.int64], device: torch.device
    ) -> dict[str, Int[Tensor, "B N"]]:
        """Return some texts as model inputs, padded on the right."""
        longest = max(len(self.ids[i]) for i in rows)
        ids = np.full((len(rows), longest), self.padding, dtype=np.int64)
        mask = np.zeros((len(rows), longest), dtype=np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(self.ids[row])] = self.ids[row]
            mask[place, : len(self.ids[row])] = 1
        return {
            "input_ids": torch.from_numpy(ids).to(device),
            "attention_mask": torch.from_numpy(mask).to(device),
        }

    def batch(self, rows: NDArray[np.int64]) -> dict[str, Tensor]:
        """Return some texts as model inputs, with their `labels`."""
        labels = torch.from_numpy(self.labels[rows])
        return {**self.inputs(rows, torch.device("cpu")), "labels": labels}

    def batches(self) -> list[NDArray[np.int64]]:
        """Return batches of rows for evaluation, similar lengths together."""
        return sorted_batches(self.lengths, EVALUATION_TOKENS)


class SmallTransformer(nn.Module):
    """A BERT-shaped encoder from scratch, a mean over its tokens, a linear layer: (B, N) to logits (B, C).

    The paper says "Transformer encoder" and gives no sizes; these are common ones. With `pooling` "first",
    the start mark alone is read, which knows the words through attention only. The input is word numbers
    between a start and an end mark.
    """

    def __init__(self, settings: DrozdyukSettings, words: int, classes: int) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=words,
            hidden_size=settings.size,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            intermediate_size=settings.feed_forward,
            hidden_dropout_prob=settings.dropout,
            attention_probs_dropout_prob=settings.dropout,
            max_position_embeddings=settings.max_length,
            type_vocab_size=1,
            pad_token_id=PAD,
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        self.bert.set_attn_implementation(NAME)
        self.head = nn.Linear(settings.size, classes)
        self.pooling = settings.pooling

    def forward(
        self, input_ids: Int[Tensor, "B N"], attention_mask: Int[Tensor, "B N"]
    ) -> SequenceClassifierOutput:
        """Return logits, as transformers' own classifiers do."""
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        if self.pooling == "first":
            return SequenceClassifierOutput(logits=self.head(hidden[:, 0]))
        real = attention_mask[:, :, None].to(hidden.dtype)
        return SequenceClassifierOutput(logits=self.head((hidden * real).sum(1) / real.sum(1)))


@dataclass(frozen=True)
class ProbedClassifier:
    """A classifier and the activation that its attention was trained with."""

    model: nn.Module
    activation: str
    classes: int

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.model.parameters()).device

    def logits(
        self,
        inputs: Mapping[str, Tensor],
        edit: Intervention | None = None,
        activation: Intervention | None = None,
        recorder: Intervention | None = None,
    ) -> Float[Tensor, "B C"]:
        """Return logits with an edit of the scores, the model's own activation or another, and a recorder last.

        Raises:
            InputError: the model makes no call of the attention hook.
        """
        links = (edit, activation or Activation(self.activation), recorder)
        with visiting(self.model, Chain(*(link for link in links if link is not None))) as seen:
            logits: Tensor = self.model(**inputs).logits
        if not seen:
            raise InputError(
                f"{type(self.model).__name__}: expected a model on the attention interface of transformers, "
                "it made no call; choose another architecture"
            )
        return logits


def seed_of(*seed: int | str) -> int:
    """Derive one seed from several parts."""
    parts = [n for part in seed for n in (part.encode() if isinstance(part, str) else [part])]
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def vocabulary_of(split: Split, settings: DrozdyukSettings) -> Vocabulary:
    """Return the most frequent lower-cased words of the training texts."""
    vocabulary = Vocabulary.build(lower(split), settings.min_df)
    if len(vocabulary.words) <= settings.words:
        return vocabulary
    counts = dict.fromkeys(vocabulary.words, 0)
    for text in lower(split):
        for word in set(text) & counts.keys():
            counts[word] += 1
    best = sorted(vocabulary.words, key=lambda word: (-counts[word], word))[: settings.words]
    return Vocabulary(sorted(best))


def lower(split: Split) -> list[list[str]]:
    """Return the texts' words in lower case."""
    return [[word.lower() for word in text] for text in split.tokens]


def numbered(split: Split, vocabulary: Vocabulary, settings: DrozdyukSettings) -> Texts:
    """Encode texts as word numbers between marks, cut to the model's length."""
    word_limit = settings.max_length - 2
    return Texts([vocabulary.encode(text[:word_limit]) for text in lower(split)], split.labels)


def new_transformer(
    settings: DrozdyukSettings, words: int, classes: int, activation: str, seed: int
) -> ProbedClassifier:
    """Make an untrained transformer; the same seed gives every activation the same starting weights."""
    with seeded(seed_of(seed, "weights")):
        return ProbedClassifier(SmallTransformer(settings, words, classes), activation, classes)


class TransformerObjective(Objective):
    """Train a subject's transformer: Adam, mean cross entropy, the epoch of the best dev accuracy.

    Stops after `patience` epochs without improvement. The activation is the model's own in training
    as in testing; dropout follows it, as in the model's file. One stream of random numbers
    draws the dropout of all epochs.
    """

    def __init__(
        self,
        subject: ProbedClassifier,
        train: Texts,
        dev: Texts,
        settings: DrozdyukSettings,
        seed: int,
    ) -> None:
        model = subject.model.requires_grad_(True)
        self.subject, self.dev, self.patience = subject, dev, settings.patience
        # A generator on the model's device, where dropout draws.
        self.dropout = torch.Generator(subject.device).manual_seed(seed_of(seed, "dropout"))
        super().__init__(
            model,
            # Fused: the same rule, several times faster than a loop over parameters.
            torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True),
            train.lengths,
            train.batch,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            seed=seed,
            made_with=made_with(settings, subject, seed),
            generators={"dropout": self.dropout},
        )

    def random_state(self, rng: np.random.Generator) -> AbstractContextManager[None]:
        """Draw from the stream of dropout, where the previous epoch left it."""
        return drawing_from(self.dropout)

    def loss(self, model: nn.Module, batch: dict[str, Tensor]) -> Float[Tensor, ""]:
        """Return the mean cross entropy."""
        labels = batch.pop("labels")
        return functional.cross_entropy(replace(self.subject, model=model).logits(batch), labels)

    def scores(self) -> dict[str, float]:
        """Return the accuracy on the dev split."""
        self.model.eval()
        logits = all_logits(self.subject, self.dev)
        if not torch.isfinite(logits).all():
            raise Diverged
        return {"accuracy": float((logits.argmax(1).numpy() == self.dev.labels).mean())}

    def is_finished(self, progress: Progress) -> bool:
        """Return whether `patience` epochs passed without improvement."""
        return progress.is_over(self.patience)


def made_with(
    settings: DrozdyukSettings, subject: ProbedClassifier, *parts: int | str
) -> dict[str, Any]:
    """Return what a checkpoint must have been made with; the fingerprint represents the data."""
    values = settings.model_dump(mode="json", exclude={"data"})
    return {**values, "activation": subject.activation, "parts": list(parts)}


def train_transformer(
    subject: ProbedClassifier,
    train: Texts,
    dev: Texts,
    settings: DrozdyukSettings,
    seed: int,
    checkpoint: Path | None = None,
) -> list[float]:
    """Train in place, keep the epoch of the best dev accuracy and return all of them (see `fit`).

    Raises:
        InputError: the training diverged, or a checkpoint that is damaged or of another training.
    """
    subject.model.to(Accelerator().device)
    objective = TransformerObjective(subject, train, dev, settings, seed)
    trained = fit(objective, checkpoint)
    return [scores["accuracy"] for scores in trained.scores]


@torch.no_grad()
def all_logits(
    subject: ProbedClassifier, texts: Texts, activation: Intervention | None = None
) -> Float[Tensor, "B C"]:
    """Return the logits of all texts, in their order."""
    parts = texts.batches()
    logits = [
        subject.logits(texts.inputs(rows, subject.device), activation=activation).cpu()
        for rows in parts
    ]
    return scatter_rows([torch.from_numpy(rows) for rows in parts], logits)


def real_positions(inputs: Mapping[str, Tensor]) -> Bool[Tensor, "B N"]:
    """Return the mask of real tokens."""
    return inputs["attention_mask"].bool()
