"""Clark et al., "What Does BERT Look At?": what heads attend to, which follow syntax, and what probes read.

    reproduce(model="my-classifier", out="runs/clark")                      # sentences of our grammar
    reproduce(model="my-classifier", trees="dev.conllu", out="runs/clark")  # of a file

Heads and offsets are chosen, and probes trained, on one part of the sentences; all accuracies are of another.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.data.trees import HeldOut, fingerprint
from heedmap.data.vocabulary import vectors_hash
from heedmap.huggingface.class_names import class_names
from heedmap.huggingface.loading import load_classifier
from heedmap.huggingface.opening import open_classifier
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.word_attention import read_attention, with_random_layers
from heedmap.papers.clark.probing import chance, probe_rows
from heedmap.papers.clark.profiles import profile_rows
from heedmap.papers.clark.relations import RelationSearch, predict
from heedmap.papers.clark.result import Clark, result
from heedmap.papers.clark.settings import ClarkSettings
from heedmap.papers.clark.texts import (
    GRAMMAR,
    Vectors,
    WordVectors,
    all_trees,
    read_word_vectors,
    readable,
    segments,
)
from heedmap.papers.kit.parts import ABOUT, Row
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.runs.run_paths import Out
from heedmap.settings.models import TransformerSettings
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

SCHEMA = pa.schema(
    [
        ("part", pa.string()),
        ("model", pa.string()),
        ("layer", pa.int64()),
        ("head", pa.int64()),
        *((name, pa.float64()) for name in (
            "cls", "sep", "punctuation", "self", "next", "previous", "sep_to_sep", "others_to_sep",
            "entropy", "entropy_cls",
        )),
        ("label", pa.string()),
        ("cluster", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("distances", pa.list_(pa.float64())),
        ("relation", pa.string()),
        ("direction", pa.string()),
        ("offset", pa.int64()),
        *((name, pa.float64()) for name in (
            "offset_accuracy", "gain", "gain_low", "gain_high", "control_accuracy", "control_gain",
            "control_gain_largest",
        )),
        ("probe", pa.string()),
        ("task", pa.string()),
        ("seed", pa.int64()),
        ("accuracy", pa.float64()),
        ("n", pa.int64()),
        ("correct", pa.list_(pa.int64())),
        ("scored", pa.list_(pa.int64())),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Shared:
    """What all cells have in common."""

    settings: ClarkSettings
    trees: HeldOut
    vectors: WordVectors | None


def cells(settings: ClarkSettings) -> list[Cell]:
    """Return the cells: the heads, single heads as parsers (of both models), and the probes of each seed."""
    return [
        Cell("heads", {"part": "heads", "model": "trained", "seed": None}),
        Cell("relations", {"part": "relations", "model": "trained", "seed": None}),
        Cell("relations-random", {"part": "relations", "model": "random", "seed": None}),
        *(
            Cell(f"probes-{seed}", {"part": "probes", "model": "both", "seed": seed})
            for seed in range(settings.seeds)
        ),
    ]


@takes_executor
def reproduce(
    *,
    model: str,
    trees: str | Path | None = None,
    vectors: str | Path | None = None,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Clark:
    """Describe the heads of a model, and judge them and probes as parsers. Resumes a stopped run.

    Args:
        model: a folder, or a name on the Hub, of a text classifier.
        trees: a CoNLL-U file; by default sentences of our grammar.
        vectors: a file of word vectors for the probes; by default the model's own embeddings.
        out, overwrite, workers: see `Experiment`.
        options: see `ClarkSettings`.

    Raises:
        InputError: a setting that does not fit, a file or a model that cannot be read, too few sentences,
            another reproduction in `out`, or another process that writes there.
    """
    processes(workers)
    sizes = ClarkSettings.of(model=model, weights="", trees="", **options)
    train, test = sizes.train_sentences, sizes.test_sentences
    sentences, notes = all_trees(None if trees is None else Path(trees), train + test)
    classifier, opened = open_classifier(TransformerSettings.of(source=model))
    # Refuses models whose layers are not of a text's attention over itself.
    read_attention(classifier, sentences[0].pieces)
    split, split_notes = readable(classifier, sentences, train, test)
    from_file, vectors_note = None, "Word vectors: the model's own embeddings, mean over sub-words."
    if vectors is not None:
        from_file, vectors_note = read_word_vectors(Path(vectors), [*split.train, *split.test])
    settings = ClarkSettings.of(
        model=model,
        weights=opened.weights,
        trees=fingerprint([*split.train, *split.test]),
        vectors=None if vectors is None else vectors_hash(Path(vectors)),
        **options,
    )
    source = GRAMMAR if trees is None else Path(trees).name
    notes = [
        f"Model: {model}, {len(classifier.calls)} layers of {classifier.heads} heads. Trees: {source}.",
        *notes,
        *split_notes,
        vectors_note,
        f"Guessing one of the other words is right in {chance(split.test):.1%}.",
    ]
    shared = Shared(settings, split, from_file)
    name = f"{Path(model).name}, {source}"
    with EXPERIMENT.opened(
        out, settings, overwrite=overwrite, name=name, notes=notes
    ) as reproduction:
        return EXPERIMENT.run(reproduction, partial(compute, shared=shared), workers=workers)


def open_model(settings: ClarkSettings) -> TransformerClassifier:
    """Open the model again, which was verified before."""
    model, tokenizer = load_classifier(settings.model)
    classes = class_names(model.config.id2label, settings.model)
    return TransformerClassifier(
        model, tokenizer, TransformerSettings(source=settings.model), classes
    )


def compute(cell: Cell, checkpoints: Path, *, shared: Shared) -> tuple[list[Row], Modules]:
    """Measure one part; no part is so long that it needs checkpoints."""
    settings, trees = shared.settings, shared.trees
    model = open_model(settings)
    if cell["part"] == "heads":
        return profile_rows(model, segments(model, trees.train, settings.segments)), {}
    if cell["part"] == "probes":
        return probe_rows(
            model, Vectors(model, shared.vectors, trees.train), trees, cell["seed"]
        ), {}
    is_random = cell["model"] == "random"
    subject = with_random_layers(model, 0) if is_random else model
    train, test = predict(subject, trees.train, "train"), predict(subject, trees.test, "test")
    search = RelationSearch(trees, train, test, model.heads)
    return search.rows(settings.controls) + ([] if is_random else search.baseline_rows()), {}


EXPERIMENT = Experiment(ClarkSettings, Clark, cells, SCHEMA, result, files=(ABOUT,))
PAPER: Paper[Clark] = Paper(EXPERIMENT.read, result)
