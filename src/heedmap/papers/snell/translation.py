"""Where does a translator's attention come from? Snell et al.'s account, for every target position.

found = reproduce(load_parallel("multi30k", "de", "en"), source="de", target="en", out="runs/snell")

OUT/pieces.json                     the sub-words
OUT/models/KIND-SEED/dynamics/      what was recorded of a training
OUT/models/KIND-SEED/model.safetensors
OUT/parts/SEED.parquet              what is read off the models of a seed, beside those of the others
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from safetensors.torch import load, save

from heedmap.data.parallel import Pairs, Parallel
from heedmap.data.pieces import Pieces
from heedmap.errors import InputError, check_installed
from heedmap.files import manifest
from heedmap.files.manifest import remove
from heedmap.files.tables import write_table
from heedmap.models.beam_search import translate
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.parts import (
    ABOUT,
    part_path,
    read_about,
    read_reproduction,
    reserved,
    write_about,
)
from heedmap.papers.kit.render import write
from heedmap.papers.snell.alignment import error_rates
from heedmap.papers.snell.attraction import rows_of_seed
from heedmap.papers.snell.classification import MODELS, SCHEMA, Cell
from heedmap.papers.snell.per_position import experiments
from heedmap.papers.snell.records import padded, record_of
from heedmap.papers.snell.settings import TranslationSettings
from heedmap.papers.snell.translation_result import Translation, result
from heedmap.papers.snell.translation_task import (
    Encoded,
    TranslationObjective,
    TranslationRecorder,
    accuracy,
    sample,
)
from heedmap.papers.snell.word_proxies import bag_of_words, dictionary
from heedmap.runs.run_paths import Out
from heedmap.terminal.progress import doing
from heedmap.training.cells import run_cells
from heedmap.training.dynamics import recorded_in
from heedmap.training.fit import fit
from heedmap.training.objective import seeded
from heedmap.training.sweep import processes

PIECES = "pieces.json"


def cells(settings: TranslationSettings) -> list[Cell]:
    """Return all trainings."""
    return [Cell(kind, s) for s in range(settings.seeds) for kind in ("learned", "uniform")]


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
) -> Translation:
    """Train translators with learned and with uniform attention, and compare. Resumes a stopped call.

    Args:
        corpus: from `load_parallel`; links of its test words are the automatic alignment.
        source, target: the languages' names.
        out: the folder.
        gold: other sentences whose words people linked.
        overwrite: replace a reproduction with other settings.
        workers: how many processes; one per core by default. The numbers do not depend on it.
        options: see `TranslationSettings`.

    Raises:
        InputError: a setting that does not fit; another reproduction in `out`, or another process that writes
            there; no sacrebleu.
    """
    check_installed("sacrebleu", "papers", "BLEU")
    processes(workers)
    settings = TranslationSettings.of(
        fingerprint=corpus.fingerprint(),
        source=source,
        target=target,
        gold="" if gold is None else gold.fingerprint(),
        **options,
    )
    train = corpus.splits["train"]
    gold = None if gold is None else _cased_as(train, gold)
    if settings.train_pairs is not None and len(train) > settings.train_pairs:
        rng = np.random.default_rng(0)
        kept = np.sort(rng.choice(len(train), settings.train_pairs, replace=False))
        train = train.take(kept)
    test = corpus.splits["test"]
    with reserved(out, settings, overwrite=overwrite, own=(MODELS, PIECES, ABOUT)) as folder:
        write_about(folder, corpus.name, _notes(corpus, train, settings, gold))
        if not (folder / PIECES).exists():
            sides = (words for side in (train.source, train.target) for words in side)
            manifest.write(folder / PIECES, Pieces.learned(sides, settings.vocabulary).json())
        pieces = _pieces(folder)
        dev = Encoded.of(corpus.splits["dev"], pieces)
        encoded, held_out = Encoded.of(train, pieces), Encoded.of(test, pieces)
        run_cells(
            cells(settings),
            partial(
                run, splits=(encoded, dev, held_out), settings=settings, folder=folder
            ),
            lambda cell, found: None,
            is_finished=lambda cell: _weights(folder, cell).exists(),
            workers=workers,
        )  # fmt: skip
        seeds = range(settings.seeds)
        missing = [seed for seed in seeds if not part_path(folder, str(seed)).exists()]
        if missing:
            recorded = {str(cell): _recorded(folder, cell) for cell in cells(settings)}
            doing("bag of words")
            maps = _proxies(encoded, held_out, len(pieces), settings)
            learned = [record_of(recorded[f"learned-{seed}"]) for seed in seeds]
            proxies = {name: padded(each, learned[0].mask) for name, each in maps.items()}
            for seed in missing:
                doing(f"comparing, seed {seed}")
                twin = record_of(recorded[f"uniform-{seed}"])
                rows = rows_of_seed(seed, learned, twin, proxies, "dictionary")
                rows += _more(seed, folder, settings, pieces, encoded, held_out, test, gold)
                write_table(
                    part_path(folder, str(seed)),
                    pa.Table.from_pylist([{"seed": seed, **row} for row in rows], schema=SCHEMA),
                )
        found = read(folder)
        assert found is not None
        write(folder, result(found))
    return found


def _notes(
    corpus: Parallel, train: Pairs, settings: TranslationSettings, gold: Pairs | None
) -> list[str]:
    held = ", ".join(f"{name} {len(corpus.splits[name])}" for name in ("dev", "test"))
    left = "; ".join(f"{reason}: {count}" for reason, count in sorted(corpus.left_out.items()))
    return [
        f"Pairs of {corpus.name}, {settings.source} to {settings.target}: train {len(train)} of "
        f"{len(corpus.splits['train'])}, {held}.",
        *([f"Left out: {left}."] if left else []),
        *(_about_gold(gold, train) if gold is not None else []),
    ]


def _cased_as(train: Pairs, gold: Pairs) -> Pairs:
    """Return `gold` in lower case if all of `train` is."""
    if any(
        word != word.lower() for side in (train.source, train.target) for s in side for word in s
    ):
        return gold
    sides = [[[word.lower() for word in s] for s in side] for side in (gold.source, gold.target)]
    return Pairs(sides[0], sides[1], gold.sure, gold.possible)


def _about_gold(gold: Pairs, train: Pairs) -> list[str]:
    known = {word for side in (train.source, train.target) for s in side for word in s}
    words = [word for side in (gold.source, gold.target) for s in side for word in s]
    new = sum(word not in known for word in words) / len(words)
    return [
        f"Links by people: {len(gold)} other sentences, of whose words {new:.0%} are not in the sentences "
        "trained on (as sub-words they are read all the same)."
    ]


def _initial(settings: TranslationSettings, kind: str, symbols: int, seed: int) -> EncoderDecoder:
    with seeded(seed):
        return EncoderDecoder(
            EncoderDecoderSettings(
                size=settings.size,
                embedding=settings.size,
                bidirectional=True,
                attention="learned" if kind == "learned" else "uniform",
                activation="relu",
                shared=False,
                layers=settings.layers,
                dropout=settings.dropout,
            ),
            symbols,
        )


def _pieces(folder: Path) -> Pieces:
    manifest.check(folder / PIECES)
    return Pieces.read(folder / PIECES)


def _weights(folder: Path, cell: Cell) -> Path:
    return cell.folder(folder) / "model.safetensors"


def run(
    cell: Cell,
    *,
    splits: tuple[Encoded, Encoded, Encoded],
    settings: TranslationSettings,
    folder: Path,
) -> None:
    """Train one translator, unless it is finished, and keep its best epoch's weights."""
    path, checkpoint = _weights(folder, cell), cell.folder(folder) / "checkpoint.safetensors"
    if path.exists():
        remove(checkpoint)  # of a call that was killed before it did
        return
    train, dev, test = splits
    pieces = _pieces(folder)
    model = _initial(settings, cell.kind, len(pieces), cell.seed)
    objective = TranslationObjective(
        model, train, dev,
        epochs=settings.epochs, batch_size=settings.batch_size, learning_rate=settings.learning_rate,
        seed=cell.seed, made_with={"kind": cell.kind, **settings.model_dump(mode="json")},
    )  # fmt: skip
    objective.recorder = TranslationRecorder(
        model, test, dev, pieces, cell.folder(folder) / "dynamics"
    )
    fit(objective, checkpoint)
    manifest.write(path, save(model.cpu().state_dict()))
    remove(checkpoint)


def _recorded(folder: Path, cell: Cell) -> pa.Table:
    found = recorded_in(cell.folder(folder) / "dynamics")
    if found is None:
        raise InputError(
            f"{cell.folder(folder)}: nothing is recorded there; delete it and run the reproduction again"
        )
    return found


def _trained(
    folder: Path, settings: TranslationSettings, cell: Cell, symbols: int
) -> EncoderDecoder:
    model = _initial(settings, cell.kind, symbols, cell.seed)
    model.load_state_dict(load(manifest.read(_weights(folder, cell))))
    torch.nn.Module.eval(model).requires_grad_(False)
    return model


def _proxies(
    train: Encoded, test: Encoded, symbols: int, settings: TranslationSettings
) -> dict[str, list[Any]]:
    """Return maps of every recorded target position, of the bag of words and of the dictionary."""
    found: dict[str, list[Any]] = {}
    for name, scores in (
        ("bag", bag_of_words(train, symbols, settings.size, settings.proxy_epochs)),
        ("dictionary", dictionary(train, symbols)),
    ):
        found[name] = [
            each
            for row in sample(test)
            for each in scores(test.source[row], test.target[row]).double().numpy()
        ]
    return found


def _more(
    seed: int,
    folder: Path,
    settings: TranslationSettings,
    pieces: Pieces,
    train: Encoded,
    test: Encoded,
    words: Pairs,
    gold: Pairs | None,
) -> list[dict[str, Any]]:
    """Return BLEU and accuracy, alignment error rates, and the experiments per target position."""
    models = {
        kind: _trained(folder, settings, Cell(kind, seed), len(pieces))
        for kind in ("learned", "uniform")
    }
    rows: list[dict[str, Any]] = []
    for kind, model in models.items():
        rows.append(_row(f"accuracy {kind}", "final", accuracy(model, test)))
        rows.append(_row(f"BLEU {kind}", "final", bleu(model, test, words, pieces, settings)))
    rows += [
        _row(name, "positions", value)
        for name, value in experiments(models["learned"], test, seed).items()
    ]
    lexicon = dictionary(train, len(pieces))
    for choice, pairs in (("automatic", words), ("people", gold)):
        if pairs is not None and pairs.sure is not None:
            rates = error_rates(models, lexicon, pairs, Encoded.of(pairs, pieces))
            rows += [_row(f"AER {name}", choice, value) for name, value in rates.items()]
    return rows


def _row(quantity: str, choice: str, value: float) -> dict[str, Any]:
    return {"quantity": quantity, "choice": choice, "step": float("nan"), "value": value}


def bleu(
    model: EncoderDecoder,
    test: Encoded,
    words: Pairs,
    pieces: Pieces,
    settings: TranslationSettings,
) -> float:
    """Return sacrebleu's BLEU of the first `bleu_pairs` sentences, of words as they are separated already."""
    from sacrebleu import corpus_bleu

    count = min(settings.bleu_pairs, len(test.source))
    found = [
        " ".join(
            pieces.words(
                translate(
                    model, torch.tensor(test.source[row]), start=Pieces.start, end=Pieces.end,
                    beams=settings.beams,
                )
            )
        )
        for row in range(count)
    ]  # fmt: skip
    wanted = [" ".join(one) for one in words.target[:count]]
    return float(corpus_bleu(found, [wanted], tokenize="none", force=True).score)


def read(folder: Path) -> Translation | None:
    """Read the comparisons in a folder; return None where there is no finished reproduction of this part.

    Raises:
        InputError: a part is damaged.
    """
    about = read_about(folder, TranslationSettings)
    if about is None:
        return None

    def names(settings: TranslationSettings) -> Sequence[str]:
        return [str(seed) for seed in range(settings.seeds)]

    found = read_reproduction(folder, TranslationSettings, SCHEMA, names)
    if found is None:
        return None
    settings, rows = found
    example = Cell("learned", 0).folder(folder)
    pieces = Pieces.read(folder / PIECES)
    symbols = [pieces.token(number) for number in range(len(pieces))]
    return Translation(about[1], settings, rows, about[2], folder, example, symbols)
