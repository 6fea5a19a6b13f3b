"""Lu et al.'s attention calibration: Transformer translators with and without it, and what their maps show.

rows = reproduce(load_parallel("multi30k", "de", "en"), source="de", target="en", out="runs/lu").rows
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.data.parallel import Pairs, Parallel
from heedmap.data.pieces import Pieces
from heedmap.errors import check_installed
from heedmap.models.transformer_translator import TranslatorSettings
from heedmap.papers.kit.parts import ABOUT, Row
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules, check_distinct
from heedmap.papers.kit.translators import (
    PIECES,
    Encoded,
    bleu,
    cased_as,
    learned_pieces,
    notes_on_pairs,
    sampled,
)
from heedmap.papers.lu.calibration import CalibratedTranslator
from heedmap.papers.lu.measures import alignment, measure, skill, weights_read
from heedmap.papers.lu.numbers import Lu
from heedmap.papers.lu.reading import translate
from heedmap.papers.lu.result import result
from heedmap.papers.lu.settings import LuSettings
from heedmap.papers.lu.training import CalibrationObjective
from heedmap.runs.run_paths import Out
from heedmap.terminal.progress import doing
from heedmap.training.fit import fit
from heedmap.training.objective import seeded
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

SCHEMA = pa.schema(
    [
        ("fusion", pa.string()), ("seed", pa.int64()), ("quantity", pa.string()), ("map", pa.string()),
        ("layer", pa.int64()), ("value", pa.float64()), ("chance", pa.float64()),
        ("ceiling", pa.float64()), ("n", pa.int64()),
    ]
)  # fmt: skip
SPARE = 10  # sub-words that a translation may be longer than twice its source


@dataclass(frozen=True)
class Shared:
    """What all cells have in common: sentences as words and as sub-words, and the sub-words themselves."""

    settings: LuSettings
    splits: dict[str, Encoded]
    test: Pairs
    gold: Pairs | None
    pieces: str


def cells(settings: LuSettings) -> list[Cell]:
    """Return the trainings, all fusions of a seed before the next: a stopped run still compares them."""
    return [
        Cell(f"{fusion}-{seed}", {"fusion": fusion, "seed": seed})
        for seed in range(settings.seeds)
        for fusion in settings.fusions
    ]


@takes_executor
def reproduce(
    corpus: Parallel,
    *,
    source: str,
    target: str,
    out: Out,
    gold: Pairs | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Lu:
    """Train translators with each fusion, and measure their maps. Resumes a stopped call.

    Args:
        corpus: from `load_parallel` or `made_corpus`; links of its test words are the automatic alignment.
        source, target: the languages' names.
        gold: other sentences whose words people linked.
        out, overwrite, workers: see `Experiment`.
        options: see `LuSettings`.

    Raises:
        InputError: a setting that does not fit; another reproduction in `out`, or another process that writes
            there; no sacrebleu.
    """
    check_installed("sacrebleu", "papers", "BLEU")
    processes(workers)
    settings = LuSettings.of(
        fingerprint=corpus.fingerprint(),
        source=source,
        target=target,
        gold="" if gold is None else gold.fingerprint(),
        **options,
    )
    check_distinct("fusions", settings.fusions)
    train = sampled(corpus.splits["train"], settings.train_pairs)
    gold = None if gold is None else cased_as(corpus.splits["train"], gold)
    with EXPERIMENT.opened(
        out,
        settings,
        overwrite=overwrite,
        name=corpus.name,
        notes=notes_on_pairs(corpus, train, source, target, gold),
    ) as reproduction:
        pieces = learned_pieces(reproduction.folder, train, settings.vocabulary)
        encoded = {
            "train": Encoded.of(train, pieces),
            **{name: Encoded.of(corpus.splits[name], pieces) for name in ("dev", "test")},
        }
        shared = Shared(settings, encoded, corpus.splits["test"], gold, pieces.json())
        return EXPERIMENT.run(reproduction, partial(compute, shared=shared), workers=workers)


def compute(cell: Cell, checkpoints: Path, *, shared: Shared) -> tuple[list[Row], Modules]:
    """Train one translator and return all that is measured of it."""
    settings, seed = shared.settings, cell["seed"]
    pieces = Pieces.of_json(shared.pieces)
    sizes = TranslatorSettings(
        settings.size, settings.heads, settings.layers, settings.feed_forward, settings.dropout
    )
    with seeded(seed):
        model = CalibratedTranslator(
            sizes, len(pieces), cell["fusion"], renormalise=settings.renormalise
        )
    objective = CalibrationObjective(
        model, shared.splits["train"], shared.splits["dev"], settings, seed=seed,
        made_with={**cell.columns, **settings.model_dump(mode="json")},
    )  # fmt: skip
    fit(objective, checkpoints / "translator.safetensors")
    model = model.cpu()
    test = shared.splits["test"]
    doing("translating")
    rows = [_bleu(model, shared, pieces), *skill(model, test, seed)]
    doing("reading weights")
    rows += weights_read(model, test, seed)
    for choice, pairs in (("automatic", shared.test), ("people", shared.gold)):
        if pairs is not None and pairs.sure is not None:
            sample = sampled(pairs, settings.aligned_pairs)
            rows += alignment(model, sample, Encoded.of(sample, pieces), choice, seed)
    return rows, {"model": model}


def _bleu(model: CalibratedTranslator, shared: Shared, pieces: Pieces) -> Row:
    """Return the BLEU of the first `bleu_pairs` sentences; its chance is that of each other's translations."""
    settings, test = shared.settings, shared.splits["test"]
    count = min(settings.bleu_pairs, len(test.source))
    translations = [
        pieces.words(
            translate(
                model, source, start=Pieces.start, end=Pieces.end, beams=settings.beams,
                length_penalty=settings.length_penalty, longest=2 * len(source) + SPARE,
            )
        )
        for source in test.source[:count]
    ]  # fmt: skip
    references = shared.test.target[:count]
    # The next sentence of similar length, so that lengths alone are not what tells.
    order = np.argsort([len(words) for words in references], kind="stable")
    shifted = [references[i] for i in np.roll(order, 1)[np.argsort(order, kind="stable")]]
    chance = bleu(translations, shifted)
    return measure("BLEU", bleu(translations, references), chance, 100.0, n=count)


EXPERIMENT = Experiment(LuSettings, Lu, cells, SCHEMA, result, files=(PIECES, ABOUT))
PAPER: Paper[Lu] = Paper(EXPERIMENT.read, result)
