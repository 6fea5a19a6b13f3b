"""The classifiers whose attention is changed: a small transformer trained from scratch, or any other."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel
from transformers.modeling_outputs import SequenceClassifierOutput

from heedmap.data.batches import bucketed_batches, scatter_rows, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import PAD, Vocabulary
from heedmap.errors import InputError
from heedmap.huggingface.door import NAME, visiting
from heedmap.huggingface.interventions import Activation, Chain, Intervention
from heedmap.papers.drozdyuk.settings import DrozdyukSettings

EVALUATION_TOKENS = 8192

Report = Callable[[int, int, str], None]


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
        """Some texts as a model takes them, padded on the right."""
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

    def batches(self) -> list[NDArray[np.int64]]:
        """Rows for evaluation, those of similar length together."""
        return sorted_batches(self.lengths, EVALUATION_TOKENS)


class SmallTransformer(nn.Module):
    """A BERT-shaped encoder from scratch, a mean over its tokens, a linear layer: (B, N) to logits (B, C).

    The paper says "Transformer encoder" and no sizes; these are the field's usual ones. `pooling` first
    reads the start mark alone, to which only attention can carry what the words say. Words come as their
    numbers in a vocabulary, between a start and an end mark.
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
        """Logits, as transformers' own classifiers give them."""
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        if self.pooling == "first":
            return SequenceClassifierOutput(logits=self.head(hidden[:, 0]))
        real = attention_mask[:, :, None].to(hidden.dtype)
        return SequenceClassifierOutput(logits=self.head((hidden * real).sum(1) / real.sum(1)))


@dataclass(frozen=True)
class Subject:
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
        """Logits with an edit of the scores, the model's own activation or another, and a recorder last.

        Raises:
            InputError: the model makes no call at the door.
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


@contextmanager
def seeded(*seed: int | str) -> Iterator[None]:
    """torch's global random state, seeded for a while and then as it was."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed_of(*seed))
        yield


def seed_of(*seed: int | str) -> int:
    """One number from several: the same parts give the same, other parts another."""
    parts = [n for part in seed for n in (part.encode() if isinstance(part, str) else [part])]
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def vocabulary_of(split: Split, settings: DrozdyukSettings) -> Vocabulary:
    """The most frequent lower-cased words of the training texts."""
    known = Vocabulary.build(lower(split), settings.min_df)
    if len(known.words) <= settings.words:
        return known
    counts = dict.fromkeys(known.words, 0)
    for text in lower(split):
        for word in set(text) & counts.keys():
            counts[word] += 1
    best = sorted(known.words, key=lambda word: (-counts[word], word))[: settings.words]
    return Vocabulary(sorted(best))


def lower(split: Split) -> list[list[str]]:
    """The texts' words in lower case."""
    return [[word.lower() for word in text] for text in split.tokens]


def numbered(split: Split, vocabulary: Vocabulary, settings: DrozdyukSettings) -> Texts:
    """Word numbers between marks, cut to the model's length."""
    most = settings.max_length - 2
    return Texts([vocabulary.encode(text[:most]) for text in lower(split)], split.labels)


def new_transformer(
    settings: DrozdyukSettings, words: int, classes: int, activation: str, seed: int
) -> Subject:
    """An untrained transformer; the same seed gives every activation the same starting weights."""
    with seeded(seed, "weights"):
        return Subject(SmallTransformer(settings, words, classes), activation, classes)


def train_transformer(
    subject: Subject,
    train: Texts,
    dev: Texts,
    settings: DrozdyukSettings,
    seed: int,
    report: Report = lambda done, total, text: None,
) -> list[float]:
    """Train in place with Adam, keep the epoch of the best dev accuracy; gives the dev accuracies.

    Stops when `patience` epochs brought nothing better. The activation is the model's own in training
    as in testing; attention is dropped after it, as in the model's file.

    Raises:
        InputError: the training diverged.
    """
    from accelerate import Accelerator

    accelerator = Accelerator()
    model = subject.model.to(accelerator.device).train().requires_grad_(True)
    # Fused: the same rule, several times faster than a loop over parameters.
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True)
    accuracies: list[float] = []
    best: dict[str, Tensor] = {}
    with seeded(seed, "dropout"):
        for epoch in range(settings.epochs):
            rng = np.random.default_rng([seed, epoch])
            order = bucketed_batches(train.lengths, settings.batch_size, rng)
            model.train()
            for step, rows in enumerate(order):
                optimizer.zero_grad()
                logits = subject.logits(train.inputs(rows, subject.device))
                labels = torch.from_numpy(train.labels[rows]).to(logits.device)
                accelerator.backward(functional.cross_entropy(logits, labels))
                optimizer.step()
                report(
                    epoch * len(order) + step + 1,
                    len(order) * settings.epochs,
                    f"{subject.activation} {seed}: epoch {epoch + 1}",
                )
            model.eval()
            logits = all_logits(subject, dev)
            if not torch.isfinite(logits).all():
                raise InputError("the training diverged; try a smaller --learning-rate")
            accuracies.append(float((logits.argmax(1).numpy() == dev.labels).mean()))
            if accuracies[-1] > max(accuracies[:-1], default=-math.inf):
                best = {name: value.detach().clone() for name, value in model.state_dict().items()}
            elif epoch - int(np.argmax(accuracies)) >= settings.patience:
                break
    model.load_state_dict(best)
    model.eval().requires_grad_(False)
    return accuracies


@torch.no_grad()
def all_logits(
    subject: Subject, texts: Texts, activation: Intervention | None = None
) -> Float[Tensor, "N C"]:
    """Logits of all texts, in their order."""
    parts = texts.batches()
    logits = [
        subject.logits(texts.inputs(rows, subject.device), activation=activation).cpu()
        for rows in parts
    ]
    return scatter_rows([torch.from_numpy(rows) for rows in parts], logits)


def real_positions(inputs: Mapping[str, Tensor]) -> Bool[Tensor, "B N"]:
    """Where the tokens are."""
    return inputs["attention_mask"].bool()
