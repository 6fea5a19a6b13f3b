"""The run that variants are compared with, and where what is trained is kept.

    RUN/retrained/IDENTITY/VARIANT.parquet   a row per audited text; exists only when the variant is trained
    RUN/retrained/IDENTITY/VARIANT.safetensors   its weights

IDENTITY is that of the run's model, its texts and the audited ones, so that other settings of a later call use
what an earlier one has trained.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor, nn

from heedmap.data.batches import Ragged
from heedmap.data.corpus import Corpus, Split
from heedmap.data.marks import marks_of
from heedmap.data.vocabulary import UNKNOWN_WORD
from heedmap.errors import InputError
from heedmap.experiments.variants import Outcome, Variant
from heedmap.files.identity import identity, weights_hash
from heedmap.files.tables import read_table
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.trace import Model
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.training.fit import Trained
from heedmap.training.jobs import save_part
from heedmap.training.objective import Objective

FILE_NAME = 60  # characters of a variant's name in that of its file


class Prepared(NamedTuple):
    """A training, and how the audited texts are read by its model afterwards.

    `read_texts` returns their logits and weights. `blocked` returns their logits without the attention to
    impermissible words, of models that may show some.
    """

    objective: Objective
    read_texts: Callable[[], tuple[Float[Tensor, "N C"], Ragged]]
    blocked: Callable[[], Float[Tensor, "N C"]] | None = None


@dataclass(frozen=True)
class Base:
    """A run's texts and settings, the words and the weights of its model, and the folder of its variants.

    `test` are the audited texts; `filler` stands for a text whose words were all taken out. A transformer has
    no `words` and no `weights` here: its variants are fine-tuned from its own checkpoint.
    """

    corpus: Corpus
    settings: RunSettings
    words: list[str]
    weights: bytes
    filler: str
    test: Split
    folder: Path

    def path(self, variant: Variant) -> Path:
        """Return the path of a variant's table."""
        name = re.sub(r"[^a-z0-9.]+", "-", str(variant))[:FILE_NAME].strip("-")
        content = json.dumps(asdict(variant), sort_keys=True)
        return self.folder / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}.parquet"

    def is_finished(self, variant: Variant) -> bool:
        """Return whether a variant is trained."""
        return self.path(variant).exists()

    def plain(self, variant: Variant) -> Variant:
        """Return the same variant without naming what the run has anyway: one training has one name."""
        model, guide = self.settings.model, variant.guide
        redundant: dict[str, str] = {}
        if isinstance(model, ModelSettings):
            names = ("encoder", "score", "normaliser")
            redundant = {
                name: "" for name in names if getattr(variant, name) == getattr(model, name)
            }
        if isinstance(guide, Variant):
            return replace(variant, guide=self.plain(guide), **redundant)  # type: ignore[arg-type]
        return replace(variant, **redundant)  # type: ignore[arg-type]

    def splits_of(self, variant: Variant) -> tuple[Split, Split, Split]:
        """Return train, dev and the audited texts, without impermissible tokens where these are removed."""
        splits = self.corpus.splits["train"], self.corpus.splits["dev"], self.test
        penalty = variant.penalty
        if penalty is None or not penalty.removed:
            return splits
        train, dev, test = (
            replace(
                split,
                tokens=without_marked(split.tokens, marks_of(split, penalty.words), self.filler),
                rationale=None,
                written=None,
            )
            for split in splits
        )
        return train, dev, test

    def keep(self, variant: Variant, trained: Trained, prepared: Prepared) -> None:
        """Write a variant's outcome, and its weights."""
        logits, weights = prepared.read_texts()
        summary = {
            "dev": trained.scores[trained.best_epoch],
            "epoch": trained.best_epoch + 1,
            "epochs": len(trained.scores),
            "variant": asdict(variant),
            "training": asdict(trained),
        }
        columns = {
            "row": range(len(self.test)),
            "logits": _listed(logits),
            "attention": pa.array(
                [weights[row] for row in range(len(weights))], pa.list_(pa.float32())
            ),
        }
        if prepared.blocked is not None:
            columns["blocked"] = _listed(prepared.blocked())
        named = pa.table(columns).replace_schema_metadata({"about": json.dumps(summary)})
        save_part(self.path(variant), named, {"model": prepared.objective.model})

    def accuracy_without_penalty(self, variant: Variant) -> float:
        """Return the accuracy on dev that a penalised variant is held against; 0 for its control."""
        control = variant.control()
        return 0.0 if control == variant else self.outcome(control).dev["accuracy"]

    def outcome(self, variant: Variant) -> Outcome:
        """Read the outcome of a variant that is trained.

        Raises:
            InputError: the file is damaged.
        """
        path = self.path(variant)
        table = read_table(path)
        try:
            summary = json.loads(table.schema.metadata[b"about"])
            logits = np.array(table["logits"].to_pylist(), dtype=np.float64)
            attention = Ragged(table["attention"].to_pylist())
            blocked = (
                np.array(table["blocked"].to_pylist(), dtype=np.float64)
                if "blocked" in table.column_names
                else None
            )
            return Outcome(
                logits, attention, summary["dev"], summary["epoch"], summary["epochs"], blocked
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}: not the outcome of a training; delete it and run `heedmap retrain` again"
            ) from error


def _listed(logits: Float[Tensor, "N C"]) -> pa.Array:
    return pa.array(list(logits.double().numpy()), pa.list_(pa.float64()))


def without_marked(tokens: Sequence[Sequence[str]], marks: Ragged, filler: str) -> list[list[str]]:
    """Return the texts without their marked tokens; one of nothing else becomes the `filler`."""
    remaining = [
        [token for token, mark in zip(text, marks[row], strict=True) if not mark]
        for row, text in enumerate(tokens)
    ]
    return [text or [filler] for text in remaining]


def base_of(
    model: Model,
    corpus: Corpus,
    settings: RunSettings,
    test: Split,
    folder: Path,
) -> Base:
    """Return what the workers need of a run; `folder` is where its variants go."""
    bare = settings.model_copy(update={"audit": None})
    words: list[str] = []
    if isinstance(model, AttentionClassifier):
        module: nn.Module = model
        words, filler = list(model.vocabulary.words), UNKNOWN_WORD
    else:
        from heedmap.huggingface.transformer_classifier import TransformerClassifier

        assert isinstance(model, TransformerClassifier)
        module, filler = model.model, str(model.tokenizer.unk_token or ".")
    tensors = {
        name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()
    }
    texts = json.dumps([test.keys, test.tokens, test.labels.tolist()])
    made_of = identity(bare, weights_hash(tensors), corpus.classes)
    audited = hashlib.sha256(texts.encode()).hexdigest()[:8]
    with torch.no_grad():
        content = save(tensors) if isinstance(model, AttentionClassifier) else b""
    return Base(corpus, bare, words, content, filler, test, folder / f"{made_of}-{audited}")
