"""Train variants in worker processes, each resumable by itself, and read their outcomes.

    RUN/retrained/IDENTITY/VARIANT.parquet   a row per audited text; exists only when the variant is trained
    RUN/retrained/IDENTITY/VARIANT.safetensors   its weights

IDENTITY is that of the run's model, its texts and the audited ones, so that other settings of a later call use
what an earlier one has trained.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from safetensors.torch import load, load_file, save

from heedmap.data.batches import Encoded, Guided, Ragged
from heedmap.data.corpus import Corpus, Split
from heedmap.data.marks import marked_words, marks_of
from heedmap.data.vocabulary import UNKNOWN_WORD, Vocabulary
from heedmap.errors import InputError
from heedmap.experiments.variants import Outcome, Variant
from heedmap.files.identity import identity, weights_hash
from heedmap.files.storage import remove
from heedmap.files.tables import read_table
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.trace import Model
from heedmap.retraining.adversary import AdversaryObjective, Target
from heedmap.retraining.deception import DeceptiveObjective, without_marked
from heedmap.retraining.guides import guide_weights
from heedmap.retraining.reading import read
from heedmap.settings import ModelSettings, RetrainSettings, RunSettings, TrainSettings
from heedmap.training.attention import AttentionObjective
from heedmap.training.cells import checkpoints_of, run_cells, save_part
from heedmap.training.fit import Report, fit
from heedmap.training.initialisation import build_model, init_model, kind_for
from heedmap.training.objective import Objective
from heedmap.training.sweep import Tell

FILE_NAME = 60  # characters of a variant's name in that of its file


@dataclass(frozen=True)
class Base:
    """The run's model, its texts, and where its variants are kept. `test` are the audited texts."""

    corpus: Corpus
    settings: RunSettings
    words: list[str]
    weights: bytes
    test: Split
    folder: Path

    def model(self) -> AttentionClassifier:
        """Build the run's model."""
        kind = kind_for(self.corpus)
        model = build_model(self.settings, Vocabulary(self.words), self.corpus.classes, kind)
        model.load_state_dict(load(self.weights))
        return model.eval().requires_grad_(False)

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
        same = {
            name: ""
            for name in ("encoder", "score", "normaliser")
            if getattr(variant, name) == getattr(model, name)
        }
        if isinstance(guide, Variant):
            return replace(variant, guide=self.plain(guide), **same)  # type: ignore[arg-type]
        return replace(variant, **same)  # type: ignore[arg-type]

    def settings_of(self, variant: Variant) -> RunSettings:
        """Return the settings of a variant's training."""
        model, train = self.settings.model, self.settings.train
        assert isinstance(model, ModelSettings)
        assert isinstance(train, TrainSettings)
        changes = {
            name: value
            for name in ("encoder", "score", "normaliser")
            if (value := getattr(variant, name))
        }
        return self.settings.model_copy(
            update={
                "model": model.model_copy(update=changes),
                "train": train.model_copy(update={"seed": variant.seed}),
            }
        )

    def splits_of(self, variant: Variant) -> tuple[Split, Split, Split]:
        """Return train, dev and the audited texts, without impermissible tokens where these are removed."""
        splits = self.corpus.splits["train"], self.corpus.splits["dev"], self.test
        how = variant.penalty
        if how is None or not how.removed:
            return splits
        train, dev, test = (
            replace(
                split,
                tokens=without_marked(split.tokens, marks_of(split, how.words), UNKNOWN_WORD),
                rationale=None,
                written=None,
            )
            for split in splits
        )
        return train, dev, test


class Trainer:
    """Implements `heedmap.experiments.variants.Retraining` for a run of ours."""

    def __init__(
        self,
        base: Base,
        settings: RetrainSettings,
        workers: int | None = None,
        report: Report = lambda done, total, text: None,
    ) -> None:
        assert isinstance(base.settings.train, TrainSettings)
        self.base, self.settings, self.seed = base, settings, base.settings.train.seed
        named = settings.forbidden
        self.words = () if named is None else marked_words(named, base.corpus)
        self._workers, self._report = workers, report
        self._planned: list[Variant] = []

    def plan(self, variants: Sequence[Variant]) -> list[list[Variant]]:
        """Train these together, once the first outcome is asked for; return what is missing, in rounds."""
        self._planned = [self.base.plain(variant) for variant in variants]
        every = [
            [one for one in some if not self.base.is_finished(one)]
            for some in rounds(self._planned)
        ]
        return [some for some in every if some]

    def outcomes(self, variants: Sequence[Variant]) -> list[Outcome]:
        """Train what is not trained yet, and return the outcomes in the order of the variants."""
        wanted = [self.base.plain(variant) for variant in variants]
        for round_ in rounds([*self._planned, *wanted]):
            if all(map(self.base.is_finished, round_)):
                continue
            run_cells(
                round_,
                partial(train_variant, base=self.base),
                lambda variant, _: None,
                is_finished=self.base.is_finished,
                workers=self._workers,
                report=self._report,
            )
        return [_outcome(self.base.path(variant)) for variant in wanted]

    def model(self, variant: Variant) -> Model:
        """Return a trained variant itself; it is trained first if need be."""
        self.outcomes([variant])
        return trained_model(self.base.plain(variant), self.base)


def rounds(variants: Sequence[Variant]) -> list[list[Variant]]:
    """Return the variants and all that they need, each once, in rounds that need only earlier ones."""

    def depth(variant: Variant) -> int:
        return 1 + max(map(depth, variant.needs()), default=-1)

    def closure(variant: Variant) -> Iterator[Variant]:
        for needed in variant.needs():
            yield from closure(needed)
        yield variant

    every = dict.fromkeys(one for variant in variants for one in closure(variant))
    found: list[list[Variant]] = [[] for _ in range(max(map(depth, every), default=-1) + 1)]
    for one in every:
        found[depth(one)].append(one)
    return found


def train_variant(variant: Variant, tell: Tell, *, base: Base) -> None:
    """Train one variant and keep its outcome, unless it is there."""
    path = base.path(variant)
    if not path.exists():
        model, test, objective = _prepare(variant, base)
        checkpoint = checkpoints_of(path) / "model.safetensors"
        trained = fit(objective, checkpoint, lambda done, total, text: tell(text))
        logits, weights = read(model.cpu(), test)
        about = {
            "dev": trained.scores[trained.best_epoch],
            "epoch": trained.best_epoch + 1,
            "epochs": len(trained.scores),
        }
        rows = pa.table(
            {
                "row": range(len(test)),
                "logits": pa.array(list(logits.double().numpy()), pa.list_(pa.float64())),
                "attention": pa.array(
                    [weights[row] for row in range(len(weights))], pa.list_(pa.float32())
                ),
            }
        )
        save_part(
            path, rows.replace_schema_metadata({"about": json.dumps(about)}), {"model": model}
        )
    remove(checkpoints_of(path))


def _prepare(variant: Variant, base: Base) -> tuple[AttentionClassifier, Encoded, Objective]:
    """Return the model before its first step, the audited texts as it reads them, and its training."""
    settings, splits = base.settings_of(variant), base.splits_of(variant)
    assert isinstance(settings.train, TrainSettings)
    parts = dict(zip(("train", "dev"), splits, strict=False))
    corpus = replace(base.corpus, splits={**base.corpus.splits, **parts})
    model, settings, _ = init_model(corpus, settings, kind_for(corpus))
    assert isinstance(settings.train, TrainSettings)
    train, dev, test = (model.encoded(split.texts, split.labels) for split in splits)
    if variant.guide is not None:
        guides = [_weights_of(variant, split, base) for split in splits]
        train, dev, test = (
            Guided(part, weights) for part, weights in zip((train, dev, test), guides, strict=True)
        )
    if variant.adversary is not None:
        own = base.model()
        targets = [Target(*read(own, own.encoded(s.texts, s.labels))) for s in splits[:2]]
        objective: Objective = AdversaryObjective(
            model, train, dev, settings.train, variant.adversary, (targets[0], targets[1])
        )
    elif variant.penalty is not None and not variant.penalty.removed:
        marks = [marks_of(split, variant.penalty.words) for split in splits[:2]]
        control = variant.control()
        accuracy = 0.0
        if control != variant:
            accuracy = _outcome(base.path(control)).dev["accuracy"]
        objective = DeceptiveObjective(
            model, train, dev, settings.train, variant.penalty, (marks[0], marks[1]), accuracy
        )
    else:
        objective = AttentionObjective(model, train, dev, settings.train)
    return model, test, objective


def _weights_of(variant: Variant, split: Split, base: Base) -> Ragged:
    """Return the weights that guide a variant."""
    guide = variant.guide
    if not isinstance(guide, Variant):
        assert guide is not None
        return guide_weights(guide, base.model(), split)
    model = trained_model(guide, base)
    return read(model, model.encoded(split.texts, split.labels))[1]


def trained_model(variant: Variant, base: Base) -> AttentionClassifier:
    """Return a variant that is trained already."""
    settings, splits = base.settings_of(variant), base.splits_of(variant)
    corpus = replace(base.corpus, splits={**base.corpus.splits, "train": splits[0]})
    model, _, _ = init_model(corpus, settings, kind_for(corpus))
    tensors = load_file(base.path(variant).with_suffix(".safetensors"))
    model.load_state_dict({name.removeprefix("model."): value for name, value in tensors.items()})
    return model.eval().requires_grad_(False)


def _outcome(path: Path) -> Outcome:
    """Read an outcome.

    Raises:
        InputError: the file is damaged.
    """
    table = read_table(path)
    try:
        about = json.loads(table.schema.metadata[b"about"])
        logits = np.array(table["logits"].to_pylist(), dtype=np.float64)
        attention = Ragged(table["attention"].to_pylist())
        return Outcome(logits, attention, about["dev"], about["epoch"], about["epochs"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not the outcome of a training; delete it and run the same command again"
        ) from error


def base_of(
    model: AttentionClassifier, corpus: Corpus, settings: RunSettings, test: Split, folder: Path
) -> Base:
    """Return what the workers need of a run; `folder` is where its variants go."""
    bare = settings.model_copy(update={"audit": None})
    tensors = {
        name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()
    }
    texts = json.dumps([test.keys, test.tokens, test.labels.tolist()])
    made_of = identity(bare, weights_hash(tensors), corpus.classes)
    audited = hashlib.sha256(texts.encode()).hexdigest()[:8]
    with torch.no_grad():
        content = save(tensors)
    return Base(
        corpus, bare, list(model.vocabulary.words), content, test, folder / f"{made_of}-{audited}"
    )
