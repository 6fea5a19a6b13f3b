"""One text under other attention: word heat maps of every intervention side by side, as one HTML page.

After Drozdyuk et al., Figures 5 to 10. No training and no data: the keys or the weights of all layers
are changed while the model reads the text, and what follows from them is made anew.
"""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from markupsafe import Markup
from torch import Tensor

from heedmap.data.corpus import Split
from heedmap.data.tokens import pieces
from heedmap.errors import InputError
from heedmap.huggingface.fitting import fit, merge
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.loading import longest
from heedmap.huggingface.recording import Recorder
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.words import sum_by_word
from heedmap.measures import change_in_prediction
from heedmap.report.heatmaps import Token
from heedmap.report.page import environment
from heedmap.report.scripts import policy
from heedmap.report.trials import Trial, trials

MOST = 150_000  # words on the page; of a larger picture only the chosen layer is drawn


@dataclass(frozen=True)
class Cell:
    """One head's row under one intervention: its words, and what falls on special tokens."""

    words: list[Token]
    special: list[tuple[str, float]]


@dataclass(frozen=True)
class Column:
    """One intervention: what the model then predicts, and how far that is from its own prediction."""

    name: str
    note: str
    predicted: str
    probability: float
    tvd: float
    flipped: bool


@dataclass(frozen=True)
class Layer:
    """The heat maps of a layer: a row per head (the last is their mean), a cell per intervention."""

    number: int
    chosen: bool
    rows: list[tuple[str, list[Cell]]]


@dataclass(frozen=True)
class Picture:
    """All that the page says."""

    model: str
    architecture: str
    text: str
    row: str
    columns: list[Column]
    layers: list[Layer]
    notes: list[str]


def draw(model: TransformerClassifier, text: str, seed: int = 0) -> Picture:
    """The model's attention on one text, its own and others'.

    The layer on trial (`model.layer`) is the one that is shown first, and the one that the adversary
    may change. A text longer than the model reads is cut, and a note says so.

    Raises:
        InputError: no word in the text, or a single one longer than the model reads.
    """
    words, notes = _words(model, text)
    batch = model.batch([words], [0])
    found, left_out = trials(model, batch, seed)
    notes += left_out
    passes = [_read(model, batch, trial) for trial in found]
    own = passes[0][0]
    columns = []
    for trial, (logits, _) in zip(found, passes, strict=True):
        shares = logits.double().softmax(-1)
        best = int(shares.argmax())
        columns.append(
            Column(
                name=trial.name,
                note=trial.note,
                predicted=model.classes[best],
                probability=float(shares[best]),
                tvd=max(0.0, float(change_in_prediction(own, logits))),  # rounding may give −0
                flipped=best != int(own.argmax()),
            )
        )
    layers = list(range(len(model.calls)))
    if len(layers) * (model.heads + 1) * len(columns) * len(words) > MOST:
        layers = [model.layer]
        notes.append(f"the picture of all layers would be too large: layer {model.layer} is drawn")
    maps = [weights for _, weights in passes]
    return Picture(
        model=Path(model.settings.source).name,
        architecture=type(model.model).__name__,
        text="".join(words).strip(),
        row={
            "first": "the row of the first position, which the classifier reads",
            "last": "the row of the last token, which the classifier reads",
            "all": "the mean of all rows, for the classifier reads them all",
        }[model.reads],
        columns=columns,
        layers=[_layer(model, batch, words, maps, number) for number in layers],
        notes=notes,
    )


def page(picture: Picture) -> str:
    """The picture as a page that needs nothing else and runs no script; every text is escaped."""
    return (
        environment()
        .get_template("picture.html")
        .render(
            picture=picture,
            style=Markup(files("heedmap.report").joinpath("style.css").read_text("utf-8")),
            policy=policy(),
        )
    )


def _words(model: TransformerClassifier, text: str) -> tuple[list[str], list[str]]:
    words = pieces(text, "words")
    if not words:
        raise InputError("expected a text of one word at least, got none; give one with --text")
    split = Split(["text"], [words], np.zeros(1, dtype=np.int64), None)
    limit = longest(model.model, model.tokenizer)
    split = fit(split, model.lengths, limit, "cut")[0]
    notes = []
    if (kept := len(split.tokens[0])) < len(words):
        notes.append(
            f"the text is longer than the {limit} positions that the model reads: "
            f"cut to its first {kept} of {len(words)} words"
        )
    shown = merge(split, model.own_words)[0].tokens[0]
    if (merged := kept - len(shown)) > 0:
        notes.append(f"words that share a sub-word are shown as one: {merged} fewer")
    return list(shown), notes


@torch.no_grad()
def _read(
    model: TransformerClassifier, batch: SubwordBatch, trial: Trial
) -> tuple[Float[Tensor, " C"], Float[Tensor, "L H N"]]:
    """Logits of one pass, and the rows shown of its weights; after the heads comes their mean."""
    recorder = Recorder()
    inputs = model.inputs(batch)
    with model.entrance.visiting(trial.chained(recorder)):
        logits = model.model(**inputs).logits[0].float()
    rows = []
    for call in model.calls:
        weights = recorder.seen_weights[call][0].double()
        row = (
            weights.mean(1) if model.reads == "all" else weights[:, int(model.read_rows(inputs)[0])]
        )
        rows.append(torch.cat([row, row.mean(0, keepdim=True)]))
    return logits, torch.stack(rows)


def _layer(
    model: TransformerClassifier,
    batch: SubwordBatch,
    words: list[str],
    maps: list[Float[Tensor, "L H N"]],
    number: int,
) -> Layer:
    texts = [word.strip() for word in words]
    outside = (batch.words[0] < 0) & batch.real[0]
    places = outside.nonzero()[:, 0].tolist()
    names = model.tokenizer.convert_ids_to_tokens([int(batch.ids[0, i]) for i in places])
    heads = [*(f"head {h}" for h in range(model.heads)), "mean"]
    rows = []
    for h, head in enumerate(heads):
        by_word = [
            sum_by_word(weights[number, h].unsqueeze(0), batch.words, len(words))[0].tolist()
            for weights in maps
        ]
        top = max(by_word[0])  # full colour is the model's own largest, in all columns
        cells = []
        for weights, values in zip(maps, by_word, strict=True):
            special: dict[str, float] = {}
            for place, name in zip(places, names, strict=True):
                special[name] = special.get(name, 0.0) + float(weights[number, h, place])
            tokens = [
                Token(text, value, min(value / top, 1.0) if top > 0 else 0.0, False)
                for text, value in zip(texts, values, strict=True)
            ]
            cells.append(Cell(tokens, list(special.items())))
        rows.append((head, cells))
    return Layer(number, number == model.layer, rows)
