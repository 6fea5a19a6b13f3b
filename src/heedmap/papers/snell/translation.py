"""Where does a translator's attention come from? Snell et al.'s account, for every target position.

found = reproduce(load_parallel("sentences", "de", "en"), source="de", target="en", out="runs/snell")

OUT/pieces.json                     the sub-words
OUT/sentence.json                   a test sentence that is drawn, and its words' co-occurrence
OUT/models/KIND-SEED/dynamics/      what was recorded of a training
OUT/models/KIND-SEED/model.safetensors
OUT/parts/SEED.parquet              what is read off the models of a seed, beside those of the others
"""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from safetensors.torch import load, save

from heedmap.data.parallel import Pairs, Parallel
from heedmap.data.pieces import Pieces
from heedmap.errors import InputError, check_installed
from heedmap.files import manifest
from heedmap.files.manifest import remove
from heedmap.models.beam_search import translate
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.parts import ABOUT, Row
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.papers.kit.translating import TranslationObjective, accuracy
from heedmap.papers.kit.translators import (
    PIECES,
    Encoded,
    bleu,
    cased_as,
    kept_pieces,
    learned_pieces,
    notes_on_pairs,
    sampled,
)
from heedmap.papers.snell.alignment import error_rates
from heedmap.papers.snell.attraction import MODELS, SCHEMA, rows_of_seed, seed_cells
from heedmap.papers.snell.per_position import experiments
from heedmap.papers.snell.records import padded, record_of
from heedmap.papers.snell.sentence_maps import SENTENCE, write_sentence
from heedmap.papers.snell.settings import TranslationSettings
from heedmap.papers.snell.translation_result import Translation, result
from heedmap.papers.snell.translation_task import TranslationRecorder, sample
from heedmap.papers.snell.word_proxies import bag_of_words, dictionary
from heedmap.runs.run_paths import Out
from heedmap.terminal.progress import doing
from heedmap.training.dynamics import recorded_in
from heedmap.training.fit import fit
from heedmap.training.jobs import run_jobs
from heedmap.training.objective import seeded
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes


def trainings(settings: TranslationSettings) -> list[Cell]:
    """Return all trainings."""
    return [_training(kind, s) for s in range(settings.seeds) for kind in ("learned", "uniform")]


def _training(kind: str, seed: int) -> Cell:
    return Cell(f"{kind}-{seed}", {"kind": kind, "seed": seed})


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
) -> Translation:
    """Train translators with learned and with uniform attention, and compare. Resumes a stopped call.

    Args:
        corpus: from `load_parallel`; links of its test words are the automatic alignment.
        source, target: the languages' names.
        gold: other sentences whose words people linked.
        out, overwrite, workers: see `Experiment`.
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
    gold = None if gold is None else cased_as(train, gold)
    train = sampled(train, settings.train_pairs)
    test = corpus.splits["test"]
    with EXPERIMENT.opened(
        out,
        settings,
        overwrite=overwrite,
        name=corpus.name,
        notes=notes_on_pairs(corpus, train, source, target, gold),
    ) as reproduction:
        folder = reproduction.folder
        pieces = learned_pieces(folder, train, settings.vocabulary)
        dev = Encoded.of(corpus.splits["dev"], pieces)
        encoded, held_out = Encoded.of(train, pieces), Encoded.of(test, pieces)
        run_jobs(
            trainings(settings),
            partial(run, splits=(encoded, dev, held_out), settings=settings, folder=folder),
            lambda cell, nothing: None,
            folder=folder,
            is_finished=lambda cell: _weights(folder, cell).exists(),
            workers=workers,
        )
        if not (folder / SENTENCE).exists():
            write_sentence(folder, held_out, pieces, dictionary(encoded, len(pieces)))
        records: dict[str, Any] = {}
        proxies: dict[str, Any] = {}

        def compare(cell: Cell, checkpoints: Path) -> tuple[list[Row], Modules]:
            seeds, seed = range(settings.seeds), cell["seed"]
            if not proxies:  # only if a seed is still to be compared
                for training in trainings(settings):
                    records[str(training)] = record_of(_recorded(folder, training))
                doing("bag of words")
                maps = _proxies(encoded, held_out, len(pieces), settings)
                mask = records["learned-0"].mask
                proxies.update((name, padded(values, mask)) for name, values in maps.items())
            doing("comparing")
            learned = [records[f"learned-{number}"] for number in seeds]
            rows = rows_of_seed(seed, learned, records[f"uniform-{seed}"], proxies, "dictionary")
            return [
                *rows,
                *_more(seed, folder, settings, pieces, encoded, held_out, test, gold),
            ], {}

        return EXPERIMENT.run(reproduction, compare, here=True)


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


def _folder(folder: Path, cell: Cell) -> Path:
    return folder / MODELS / str(cell)


def _weights(folder: Path, cell: Cell) -> Path:
    return _folder(folder, cell) / "model.safetensors"


def run(
    cell: Cell,
    *,
    splits: tuple[Encoded, Encoded, Encoded],
    settings: TranslationSettings,
    folder: Path,
) -> None:
    """Train one translator, unless it is finished, and keep its best epoch's weights."""
    path, checkpoint = _weights(folder, cell), _folder(folder, cell) / "checkpoint.safetensors"
    if path.exists():
        remove(checkpoint)  # of a call that was killed before it did
        return
    train, dev, test = splits
    pieces = kept_pieces(folder)
    model = _initial(settings, cell["kind"], len(pieces), cell["seed"])
    objective = TranslationObjective(
        model, train, dev,
        epochs=settings.epochs, batch_size=settings.batch_size, learning_rate=settings.learning_rate,
        seed=cell["seed"], made_with={"kind": cell["kind"], **settings.model_dump(mode="json")},
    )  # fmt: skip
    objective.recorder = TranslationRecorder(
        model, test, dev, pieces, _folder(folder, cell) / "dynamics"
    )
    fit(objective, checkpoint)
    manifest.write(path, save(model.cpu().state_dict()))
    remove(checkpoint)


def _recorded(folder: Path, cell: Cell) -> pa.Table:
    recorded = recorded_in(_folder(folder, cell) / "dynamics")
    if recorded is None:
        raise InputError(
            f"{_folder(folder, cell)}: nothing is recorded there; delete it and run the reproduction again"
        )
    return recorded


def _trained(
    folder: Path, settings: TranslationSettings, cell: Cell, symbols: int
) -> EncoderDecoder:
    model = _initial(settings, cell["kind"], symbols, cell["seed"])
    model.load_state_dict(load(manifest.read(_weights(folder, cell))))
    torch.nn.Module.eval(model).requires_grad_(False)
    return model


def _proxies(
    train: Encoded, test: Encoded, symbols: int, settings: TranslationSettings
) -> dict[str, list[Any]]:
    """Return maps of every recorded target position, of the bag of words and of the dictionary."""
    maps: dict[str, list[Any]] = {}
    for name, scores in (
        ("bag", bag_of_words(train, symbols, settings.size, settings.proxy_epochs)),
        ("dictionary", dictionary(train, symbols)),
    ):
        maps[name] = [
            position
            for row in sample(test)
            for position in scores(test.source[row], test.target[row]).double().numpy()
        ]
    return maps


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
        kind: _trained(folder, settings, _training(kind, seed), len(pieces))
        for kind in ("learned", "uniform")
    }
    rows: list[dict[str, Any]] = []
    for kind, model in models.items():
        rows.append(_row(f"accuracy {kind}", "final", accuracy(model, test)))
        rows.append(_row(f"BLEU {kind}", "final", _bleu(model, test, words, pieces, settings)))
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


def _bleu(
    model: EncoderDecoder,
    test: Encoded,
    words: Pairs,
    pieces: Pieces,
    settings: TranslationSettings,
) -> float:
    """Return the BLEU of the first `bleu_pairs` sentences."""
    count = min(settings.bleu_pairs, len(test.source))
    translations = [
        pieces.words(
            translate(
                model, torch.tensor(test.source[row]), start=Pieces.start, end=Pieces.end,
                beams=settings.beams,
            )
        )
        for row in range(count)
    ]  # fmt: skip
    return bleu(translations, words.target[:count])


EXPERIMENT = Experiment(
    TranslationSettings,
    Translation,
    seed_cells,
    SCHEMA,
    result,
    files=(MODELS, PIECES, SENTENCE, ABOUT),
    needs_all=True,
)
