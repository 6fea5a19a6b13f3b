"""Brunner et al. 2020, "On Identifiability in Transformers": what hidden states and attention keep of tokens.

    rows = reproduce(hm.load("SST"), model="my-classifier", out="runs/brunner-sst").rows

Each of two models, the classifier and the same architecture with random weights, has two cells: tokens
recovered from hidden states, and contributions beside attention. Maps are trained on the train split, and all
rows are of the test split.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.data.corpus import Corpus, Split
from heedmap.data.load import as_written
from heedmap.errors import InputError
from heedmap.experiments.generators import named_generator
from heedmap.huggingface.fitting import fit
from heedmap.huggingface.hidden_states import hidden_states
from heedmap.huggingface.limits import longest
from heedmap.huggingface.loading import frozen
from heedmap.huggingface.opening import open_classifier
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.papers.brunner.attribution import attribution_rows
from heedmap.papers.brunner.lookup import token_rows
from heedmap.papers.brunner.recovery import Words
from heedmap.papers.brunner.result import Brunner, result
from heedmap.papers.brunner.settings import BrunnerSettings
from heedmap.papers.kit.parts import ABOUT, Row, left_out_of
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.runs.run_paths import Out
from heedmap.settings.models import TransformerSettings
from heedmap.training.objective import seeded
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

_FIELDS = {
    pa.string(): ("weights", "part", "map", "distance", "candidates"),
    pa.int64(): (
        "text", "layer", "head", "n", "positions", "right", "new", "new_right", "rank", "free",
        "free_on_simplex", "not_largest",
    ),
    pa.float64(): (
        "chance", "median", "effective_share", "special_raw", "special_effective", "special_control",
        "tau_raw", "tau_effective",
    ),
    pa.list_(pa.float64()): ("contribution", "attention", "rollout", "uniform"),
}  # fmt: skip
SCHEMA = pa.schema([(name, kind) for kind, names in _FIELDS.items() for name in names])
TOKENS, ATTRIBUTION = "tokens", "attribution"


@dataclass(frozen=True)
class Shared:
    """What all cells have in common: the texts that maps learn on, and those that are judged."""

    settings: BrunnerSettings
    train: Words
    test: Words


def cells(settings: BrunnerSettings) -> list[Cell]:
    """Return the cells, the trained model's first."""
    return [
        Cell(f"{weights}-{part}", {"weights": weights})
        for weights in ("trained", "random")
        for part in (TOKENS, ATTRIBUTION)
    ]


@takes_executor
def reproduce(
    corpus: Corpus,
    *,
    model: str,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Brunner:
    """Recover tokens, attribute hidden states and remove the null space of attention. Resumes a stopped run.

    Args:
        corpus: from `heedmap.load`, of single texts; their labels are not used.
        model: a trained sequence classifier: a folder, or a name on the Hub.
        out, overwrite, workers: see `Experiment`.
        options: see `BrunnerSettings`.

    Raises:
        InputError: a model that cannot be put on trial or that is no single stack of layers, no held-out
            texts, a setting that does not fit, another reproduction in `out` or another process that writes
            there.
    """
    processes(workers)
    corpus = as_written(corpus)
    subject, opened = open_classifier(TransformerSettings(source=model))
    settings = BrunnerSettings.of(
        fingerprint=corpus.fingerprint(),
        data=corpus.settings,
        model=model,
        weights=opened.weights,
        **options,
    )
    splits, notes = texts_for(subject, corpus, settings)
    hidden_states(
        subject, subject.batch(splits["test"][:1], [0])
    )  # refuse before anything is written
    with EXPERIMENT.opened(
        out, settings, overwrite=overwrite, name=corpus.name, notes=notes
    ) as reproduction:
        shared = Shared(settings, splits["train"], splits["test"])
        return EXPERIMENT.run(reproduction, partial(compute, shared=shared), workers=workers)


def texts_for(
    model: TransformerClassifier, corpus: Corpus, settings: BrunnerSettings
) -> tuple[Mapping[str, Words], list[str]]:
    """Return seeded samples of the train and test texts, cut to the model's length, and notes on them.

    A test text that occurs again, or among all training texts, is left out: it is no held-out text.

    Raises:
        InputError: no text is left.
    """
    limit = min(settings.max_length, longest(model.model, model.tokenizer))
    splits, notes, counts, seen = {}, [], [], set[str]()
    for name, count in (("train", settings.train_texts), ("test", settings.test_texts)):
        split = corpus.splits[name]
        written = ["".join(words) for words in split.tokens]
        readable = model.readable(split.tokens)
        rows = []
        for row, text in enumerate(written):
            if readable[row] and text.strip() and text not in seen:
                rows.append(row)
                seen.add(text)
        rng = named_generator(settings.seed, f"brunner {name}")
        chosen = np.sort(rng.permutation(len(rows))[:count])
        sample = split.take([rows[i] for i in chosen])
        if not len(sample):
            raise InputError(
                f"{corpus.settings.source}: expected {name} texts, each once and none of them in another "
                "split; there is none; choose other data"
            )
        cut, cut_counts = fit(sample, model.lengths, limit, partial(model.truncated, longest=limit))
        splits[name] = _with_tokens(model, cut)
        counts.append(f"{name} {len(splits[name])} of {len(split)}")
        repeated = (
            {"repeated, or no text": len(split) - len(rows)} if len(rows) < len(split) else {}
        )
        without = {"without a token": len(cut) - len(splits[name])}
        left_out = {**repeated, **cut_counts, **{k: n for k, n in without.items() if n}}
        notes += left_out_of(left_out, f"Left out or cut of the {name} texts")
    attributed = min(settings.attributed_texts, len(splits["test"]))
    sizes = (
        f"Texts of {corpus.name}: {', '.join(counts)}; {attributed} of the test texts attributed."
    )
    model_note = f"Classifier: {settings.model}, {len(model.calls)} layers of {model.heads} heads."
    return splits, [model_note, sizes, *notes]


def _with_tokens(model: TransformerClassifier, split: Split) -> Words:
    """Return the texts of which the tokenizer leaves at least one token."""
    return [text for text in split.tokens if bool((model.batch([text], [0]).words >= 0).any())]


def compute(cell: Cell, checkpoints: Path, *, shared: Shared) -> tuple[list[Row], Modules]:
    """Measure one part of one model."""
    settings = shared.settings
    model, opened = open_classifier(TransformerSettings(source=settings.model))
    if opened.weights != settings.weights:
        raise InputError(f"{settings.model}: its weights have changed; insist with --overwrite")
    if cell["weights"] == "random":
        model = with_random_weights(model, settings.seed)
    if str(cell).endswith(TOKENS):
        checkpoint = checkpoints / "maps.safetensors"
        rows = token_rows(model, shared.train, shared.test, settings, cell["weights"], checkpoint)
        return rows, {}
    return attribution_rows(model, shared.test[: settings.attributed_texts], settings), {}


def with_random_weights(model: TransformerClassifier, seed: int) -> TransformerClassifier:
    """Make a model of the same architecture with the weights that a training begins with."""
    # Not the seed itself: a model that was never trained may have been made with it.
    with seeded(int(named_generator(seed, "brunner random weights").integers(1 << 62))):
        untrained = type(model.model)(copy.deepcopy(model.model.config))
    return TransformerClassifier(frozen(untrained), model.tokenizer, model.settings, model.classes)


EXPERIMENT = Experiment(BrunnerSettings, Brunner, cells, SCHEMA, result, files=(ABOUT,))
PAPER = Paper(EXPERIMENT.read, result)
