"""One text under several interventions on attention: their heat maps side by side, as one HTML page.

After Drozdyuk et al., Figures 5 to 10. Needs no training and no data: a forward pass per intervention changes
the keys or the weights of all layers.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.corpus import Split
from heedmap.data.tokens import pieces
from heedmap.errors import InputError
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.opening import fitted_text
from heedmap.huggingface.recording import Recorder
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.words import sum_by_word
from heedmap.measures import change_in_prediction
from heedmap.report.heatmaps import Token
from heedmap.report.inline_styles import InlineStyles
from heedmap.report.shown_interventions import ShownIntervention, shown_interventions
from heedmap.report.templates import environment

MOST = 150_000  # words on the page; a larger picture shows only the chosen layer


@dataclass(frozen=True)
class Cell:
    """One head's row under one intervention: its words, and the weight of special tokens."""

    words: list[Token]
    special: list[tuple[str, float]]


@dataclass(frozen=True)
class Column:
    """One intervention: the prediction under it, and its distance from the model's own."""

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
    is_on_trial: bool
    rows: list[tuple[str, list[Cell]]]


@dataclass(frozen=True)
class Picture:
    """The content of the page."""

    model: str
    architecture: str
    text: str
    row: str
    columns: list[Column]
    layers: list[Layer]
    notes: list[str]


def draw(model: TransformerClassifier, text: str, seed: int = 0) -> Picture:
    """Read one text with the model's own attention and under each intervention.

    The layer on trial (`model.layer`) is shown first, and is the one that the adversary changes. A text
    longer than the model's limit is cut, with a note.

    Raises:
        InputError: the text has no word, or a single word exceeds the model's limit.
    """
    words = pieces(text, "words")
    if not words:
        raise InputError("expected a text of one word at least, got none; give one with --text")
    whole = Split(["text"], [words], np.zeros(1, dtype=np.int64))
    split, notes = fitted_text(model, whole, "cut")
    words = split.tokens[0]
    batch = model.batch([words], [0])
    interventions, left_out = shown_interventions(model, batch, seed)
    notes += left_out
    passes = [_read(model, batch, intervention) for intervention in interventions]
    own_logits = passes[0][0]
    columns = []
    for intervention, (logits, _) in zip(interventions, passes, strict=True):
        probabilities = logits.double().softmax(-1)
        best = int(probabilities.argmax())
        columns.append(
            Column(
                name=intervention.name,
                note=intervention.note,
                predicted=model.classes[best],
                probability=float(probabilities[best]),
                tvd=max(
                    0.0, float(change_in_prediction(own_logits, logits))
                ),  # rounding may give −0
                flipped=best != int(own_logits.argmax()),
            )
        )
    layers = list(range(len(model.calls)))
    if len(layers) * (model.heads + 1) * len(columns) * len(words) > MOST:
        layers = [model.layer]
        notes.append(
            f"a picture of all layers would be too large, so only layer {model.layer} is drawn"
        )
    maps = [weights for _, weights in passes]
    return Picture(
        model=Path(model.settings.source).name,
        architecture=type(model.model).__name__,
        text="".join(words).strip(),
        row={
            "first": "the row of the first position, which the classifier reads",
            "last": "the row of the last token, which the classifier reads",
            "target": "the row of the word that is asked about",
            "all": "the mean of all rows, for the classifier reads them all",
        }[model.reads],
        columns=columns,
        layers=[_layer(model, batch, words, maps, number) for number in layers],
        notes=notes,
    )


def page(picture: Picture) -> str:
    """Render the picture as a self-contained page without scripts; all text is escaped."""
    template = environment().get_template("picture.html")
    return template.render(picture=picture, styled=InlineStyles())


@torch.no_grad()
def _read(
    model: TransformerClassifier, batch: SubwordBatch, intervention: ShownIntervention
) -> tuple[Float[Tensor, " C"], Float[Tensor, "layers maps N"]]:
    """Return the logits of one pass and, per layer, the shown row of each head and of their mean."""
    recorder = Recorder()
    inputs = model.inputs(batch)
    with model.adapter.visiting(intervention.chained(recorder)):
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
    maps: list[Float[Tensor, "layers maps N"]],
    number: int,
) -> Layer:
    texts = [word.strip() for word in words]
    outside = (batch.words[0] < 0) & batch.real[0]
    positions = outside.nonzero()[:, 0].tolist()
    names = model.tokenizer.convert_ids_to_tokens([int(batch.ids[0, i]) for i in positions])
    heads = [*(f"head {h}" for h in range(model.heads)), "mean"]
    rows = []
    for h, head in enumerate(heads):
        by_word = [
            sum_by_word(weights[number, h].unsqueeze(0), batch.words, len(words))[0].tolist()
            for weights in maps
        ]
        top = max(by_word[0])  # full colour is the model's own maximum, in all columns
        cells = []
        for weights, values in zip(maps, by_word, strict=True):
            special: dict[str, float] = {}
            for position, name in zip(positions, names, strict=True):
                special[name] = special.get(name, 0.0) + float(weights[number, h, position])
            tokens = [
                Token(text, value, min(value / top, 1.0) if top > 0 else 0.0, False)
                for text, value in zip(texts, values, strict=True)
            ]
            cells.append(Cell(tokens, list(special.items())))
        rows.append((head, cells))
    return Layer(number, number == model.layer, rows)
