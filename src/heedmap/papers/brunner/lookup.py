"""Recover tokens from hidden states by nearest neighbours, after a map or without one.

Brunner et al. 2020: the token x_i is identifiable in layer l if some map g, learned on other texts, sends the
state h_i so near to x_i that a nearest-neighbour lookup returns x_i. The token is what counts here, not its
place: of a word that stands twice in a text either is right.
"""

from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedmap.huggingface.embedding import look_up
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.papers.brunner.recovery import DISTANCES, MAPS, Words, token_states, train_maps
from heedmap.papers.brunner.settings import BrunnerSettings
from heedmap.papers.kit.parts import Row
from heedmap.terminal.progress import track

CANDIDATES = ("text", "vocabulary")
CEILING = "ceiling"
AT_ONCE = 1 << 24  # numbers of a table of distances


def nearest(
    vectors: Float[Tensor, "n E"], candidates: Float[Tensor, "m E"], distance: str
) -> Int[Tensor, " n"]:
    """Return the nearest candidate of every vector, the first of equally near ones."""
    if distance == "cosine":
        # Of the cosine, the vector's own length changes no rank.
        directions = functional.normalize(candidates, dim=-1)
        offset = candidates.new_zeros(len(candidates))
    else:
        # ‖v − c‖² = ‖v‖² − 2 (v·c − ½ ‖c‖²), and ‖v‖² is the same for all candidates.
        directions, offset = candidates, candidates.square().sum(-1) / 2
    rows = max(1, AT_ONCE // max(1, len(candidates)))
    parts = [(part @ directions.mT - offset).argmax(-1) for part in torch.split(vectors, rows)]
    return torch.cat(parts) if parts else vectors.new_zeros(0, dtype=torch.long)


def nearest_in_text(
    vectors: Float[Tensor, "n E"],
    text: Int[Tensor, " n"],
    ids: Int[Tensor, "B N"],
    embedded: Float[Tensor, "B N E"],
    real: Bool[Tensor, "B N"],
    distance: str,
) -> Int[Tensor, " n"]:
    """Return the token of the nearest neighbour among the positions of each vector's own text."""
    tokens = torch.zeros(len(vectors), dtype=torch.long, device=ids.device)
    for i in range(len(ids)):
        places = text == i
        index = nearest(vectors[places], embedded[i, real[i]], distance)
        tokens[places] = ids[i, real[i]][index]
    return tokens


def token_rows(
    model: TransformerClassifier,
    train: Words,
    test: Words,
    settings: BrunnerSettings,
    control: str,
    checkpoint: Path | None = None,
) -> list[Row]:
    """Return a row per text, layer, map, distance and candidates: of n tokens so many were `right`.

    `chance` is how many the same lookups would get right if the words' tokens of the text changed places:
    Σ_i Σ_j [t̂_i = t_j] / n. `new` and `new_right` count the tokens that no training text has. The map
    `ceiling` looks the embeddings themselves up: it misses where two tokens have equal ones. Without a map
    (`naive`) states must be as wide as embeddings; there is no such row otherwise.
    """
    maps = train_maps(model, train, settings, control, checkpoint)
    size = settings.batch_size
    known = {
        int(token)
        for start in range(0, len(train), size)
        for token in torch.unique(token_states(model, train[start : start + size]).ids)
    }
    rows: list[Row] = []
    for start in track(range(0, len(test), size)):
        rows += _token_rows_of(model, maps, test[start : start + size], start, known)
    return rows


@torch.no_grad()
def _token_rows_of(
    model: TransformerClassifier,
    maps: dict[str, nn.Module],
    texts: Words,
    first: int,
    known: set[int],
) -> list[Row]:
    batch = model.batch(texts, range(len(texts)))
    embedded = look_up(model.model, batch.ids).float()
    table = _vocabulary(model)
    states, ids, text = token_states(model, texts)
    is_new = torch.tensor([int(token) not in known for token in ids], dtype=torch.bool)
    vectors = {(CEILING, distance): table[ids].unsqueeze(0) for distance in DISTANCES}
    if states.shape[-1] == table.shape[-1]:
        vectors |= {("naive", distance): states for distance in DISTANCES}
    vectors |= {(m, d): maps[f"{m}-{d}"](states) for m in MAPS for d in DISTANCES}
    rows: list[Row] = []
    for (name, distance), layers in vectors.items():
        for layer, recovered in enumerate(layers):
            tokens_by_pool = {
                "text": nearest_in_text(recovered, text, batch.ids, embedded, batch.real, distance),
                "vocabulary": nearest(recovered, table, distance),
            }
            for candidates, tokens in tokens_by_pool.items():
                shared = {
                    "part": "tokens",
                    "map": name,
                    "distance": distance,
                    "candidates": candidates,
                    "layer": layer,
                }
                for i in range(len(texts)):
                    places = text == i
                    counted = count_right(tokens[places], ids[places], is_new[places])
                    rows.append({**shared, "text": first + i, **counted})
    return rows


def count_right(
    tokens: Int[Tensor, " n"], truth: Int[Tensor, " n"], is_new: Bool[Tensor, " n"]
) -> Row:
    """Count the recovered tokens of a text, and how many would be right by chance (see `token_rows`)."""
    right = tokens == truth
    by_chance = (tokens.unsqueeze(1) == truth).double().mean(1).sum() if len(truth) else 0.0
    return {
        "n": len(truth),
        "right": int(right.sum()),
        "chance": float(by_chance),
        "new": int(is_new.sum()),
        "new_right": int((right & is_new).sum()),
    }


def _vocabulary(model: TransformerClassifier) -> Float[Tensor, "V E"]:
    """Return the input embeddings of all tokens, as the model looks them up."""
    weight = model.model.get_input_embeddings().weight
    assert isinstance(weight, Tensor)
    ids = torch.arange(len(weight), device=model.model.device)
    return look_up(model.model, ids.unsqueeze(0))[0].float()
