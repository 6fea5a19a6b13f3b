"""Give a vision transformer the patches that are kept, each with the position embedding of its own place.

So a patch is left out as a word is: the sequence lacks its position, and all others stay what they were. The
model itself is transformers' own from the embeddings up. Patches are looked up by their ids
(`heedmap.huggingface.patch_tokens`), so that all that is done to a text model can be done to it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from heedmap.data.item_vectors import ItemVectors
from heedmap.data.pictures import Grid
from heedmap.huggingface.patch_tokens import FIRST, PADDING
from heedmap.huggingface.picture_loading import Picturing

Head = Callable[[Any, Tensor, Tensor], Tensor]


def _of_first(model: Any, states: Tensor, real: Tensor) -> Tensor:
    logits: Tensor = model.classifier(states[:, 0])
    return logits


def _of_first_two(model: Any, states: Tensor, real: Tensor) -> Tensor:
    logits: Tensor = model.cls_classifier(states[:, 0]) + model.distillation_classifier(
        states[:, 1]
    )
    return logits / 2


def _of_first_and_mean(model: Any, states: Tensor, real: Tensor) -> Tensor:
    # The model takes the mean over all patches: here over those that there are.
    before = 1 + getattr(model.config, "num_register_tokens", 0)
    kept = real[:, before:, None].to(states.dtype)
    mean = (states[:, before:] * kept).sum(1) / kept.sum(1).clamp(min=1)
    logits: Tensor = model.classifier(torch.cat([states[:, 0], mean], dim=1))
    return logits


HEADS: dict[str, Head] = {
    "ViTForImageClassification": _of_first,
    "DeiTForImageClassification": _of_first,
    "DeiTForImageClassificationWithTeacher": _of_first_two,
    "Dinov2ForImageClassification": _of_first_and_mean,
    "Dinov2WithRegistersForImageClassification": _of_first_and_mean,
}
"""What each architecture does with the last hidden states (B, N, D): its logits (B, C), as its forward does."""


class PatchModel(PreTrainedModel):  # type: ignore[no-untyped-call]
    """A vision transformer that reads ids of patches, (B, N), with an `attention_mask` where some are padding.

    Its weights are those of `classifier`, transformers' model, whose embeddings are replaced: they return what
    they are given.
    """

    base_model_prefix = "classifier"
    places: Tensor  # position embeddings of special tokens and patches, (P, D)
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(
        self, classifier: PreTrainedModel, picturing: Picturing, pictures: ItemVectors
    ) -> None:
        super().__init__(classifier.config)
        classifier.config.pad_token_id, classifier.config.eos_token_id = PADDING, None
        self.classifier, self.head = classifier, HEADS[type(classifier).__name__]
        embeddings: Any = classifier.base_model.embeddings
        self.table = PatchTable(embeddings, picturing.grid, pictures)
        self.register_buffer("places", _positions(embeddings, picturing), persistent=False)
        # The embeddings are made here: the model's own pass gets them ready.
        embeddings.forward = _unchanged

    @property
    def architecture(self) -> str:
        """Return the name of transformers' class."""
        return type(self.classifier).__name__

    def save_pretrained(self, save_directory: Any, *_: Any, **__: Any) -> None:
        """Save transformers' model in a folder."""
        self.classifier.save_pretrained(save_directory)

    def get_input_embeddings(self) -> nn.Module:
        """Return what looks ids up: projections of patches, and special tokens, without positions."""
        return self.table

    def forward(
        self, input_ids: Int[Tensor, "B N"], attention_mask: Int[Tensor, "B N"], **options: Any
    ) -> SequenceClassifierOutput:
        """Return the logits (B, C) of the kept patches."""
        embedded = self.table(input_ids) + self._places_of(input_ids)
        body: Any = self.classifier.base_model
        output = body(body.embeddings.dropout(embedded), attention_mask=attention_mask, **options)
        logits = self.head(self.classifier, output.last_hidden_state, attention_mask.bool())
        return SequenceClassifierOutput(logits=logits, attentions=output.attentions)

    def _places_of(self, ids: Int[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        special = len(self.table.special())
        in_picture = (ids - FIRST) // 2 % (len(self.places) - special)
        return self.places[torch.where(ids < FIRST, (ids - 1).clamp(min=0), special + in_picture)]


class PatchTable(nn.Module):
    """Look up ids: the projection of each patch, and the special tokens. Padding is 0.

    `pictures` may be replaced by others.
    """

    def __init__(self, embeddings: nn.Module, grid: Grid, pictures: ItemVectors) -> None:
        super().__init__()
        self.grid, self.pictures = grid, pictures
        # Not a part of this module: its weights are the model's.
        self._embeddings: list[Any] = [embeddings]

    def special(self) -> Float[Tensor, "S D"]:
        """Return the special tokens' embeddings, in the order of their positions."""
        (embeddings,) = self._embeddings
        names = ("cls_token", "distillation_token", "register_tokens")
        tokens = [getattr(embeddings, name)[0] for name in names if hasattr(embeddings, name)]
        return torch.cat(tokens)

    def forward(self, ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        """Return the vectors of these ids."""
        (embeddings,) = self._embeddings
        projection, special = embeddings.patch_embeddings.projection, self.special()
        flat = ids.flatten()
        is_patch, is_grey = flat >= FIRST, flat % 2 == 1
        pixels = np.zeros((len(flat), self.grid.width), dtype=np.float32)
        shown = (is_patch & ~is_grey).numpy(force=True)
        pixels[shown] = self.pictures.vectors((flat.numpy(force=True)[shown] - FIRST) // 2)
        pixels[(is_patch & is_grey).numpy(force=True)] = self.grid.grey
        patches = nn.functional.linear(
            torch.from_numpy(pixels).to(special), projection.weight.flatten(1), projection.bias
        )
        first = torch.cat([torch.zeros_like(special[:1]), special])[flat.clamp(max=len(special))]
        embedded = torch.where(is_patch.unsqueeze(1), patches, first)
        return embedded.view(*ids.shape, embedded.shape[-1])


def _unchanged(pixel_values: Tensor, *_: Any, **__: Any) -> Tensor:
    return pixel_values


@torch.no_grad()
def _positions(embeddings: Any, picturing: Picturing) -> Float[Tensor, "P D"]:
    """Return the position embeddings of special tokens and patches, as the model makes them for this size.

    Registers have none.
    """
    stored, own = embeddings.position_embeddings, embeddings.patch_embeddings
    before = stored.shape[1] - own.num_patches
    places = stored[0]
    height, width = picturing.height, picturing.width
    if (height, width) != tuple(own.image_size):
        blank = stored.new_zeros(1, before + picturing.grid.count, stored.shape[2])
        places = embeddings.interpolate_pos_encoding(blank, height, width)[0]
    registers = getattr(embeddings, "register_tokens", stored[:, :0]).shape[1]
    none = places.new_zeros(registers, places.shape[1])
    return torch.cat([places[:before], none, places[before:]]).clone()
