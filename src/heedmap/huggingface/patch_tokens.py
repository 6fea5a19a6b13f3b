"""The positions of a vision transformer as token ids: its special tokens, and the patches of pictures.

An id is made of a patch's row in the vectors of all pictures (`heedmap.data.item_vectors`), so that it says
what is in the patch and where the patch lies in its picture, whichever others are left out. An even id is the
patch as it is, the odd one after it the same place covered with grey.
"""

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from heedmap.data.item_vectors import SIGN, ItemVectors
from heedmap.huggingface.picture_loading import Picturing

PADDING, FIRST = 0, 64  # the padding's id, and that of row 0; ids of special tokens lie between
GREY = "grey"


class PatchTokens(PreTrainedTokenizerBase):
    """Number the patches of pictures by their names, such as `cats/1.png:17=r1c3`, and name the numbers.

    `special` are the names of the positions before the patches, such as [CLS]: their ids are 1, 2, ….
    `picturing` makes pixels of pictures; its image processor is what is saved of this.
    """

    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012  # as transformers declares it

    def __init__(self, special: Sequence[str], pictures: ItemVectors, picturing: Picturing) -> None:
        super().__init__(extra_special_tokens=list(special))  # type: ignore[no-untyped-call]
        self.special, self.pictures, self.picturing = list(special), pictures, picturing

    def __repr__(self) -> str:
        return f"PatchTokens({self.special})"

    def save_pretrained(self, save_directory: Any, *_: Any, **__: Any) -> Any:
        """Save the image processor in a folder."""
        return self.picturing.processor.save_pretrained(save_directory)

    @property
    def special_ids(self) -> list[int]:
        """Return the ids of the special tokens, in the order of their positions."""
        return list(range(PADDING + 1, PADDING + 1 + len(self.special)))

    def patch_id(self, name: str) -> int:
        """Return the id of a patch by its name."""
        row = self.pictures.row(name)
        assert row is not None, f"{name} is a patch of these pictures"
        return FIRST + 2 * row + int(name.endswith(f"{SIGN}{GREY}"))

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Return the id of a special token or of a patch, or those of several."""
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(token) for token in tokens]
        if tokens in self.special:
            return self.special_ids[self.special.index(tokens)]
        return self.patch_id(tokens)

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """Return the names of ids; special tokens are never skipped."""
        if not isinstance(ids, int):
            return [self.convert_ids_to_tokens(int(number)) for number in ids]
        if ids >= FIRST:
            return self.pictures.name((ids - FIRST) // 2)
        return "[PAD]" if ids == PADDING else self.special[ids - PADDING - 1]

    def decode(self, token_ids: Any, *_: Any, **__: Any) -> str:
        """Return the names of ids, in one string."""
        return " ".join(self.convert_ids_to_tokens(list(token_ids)))


def covered(name: str) -> str:
    """Return the name of the same place covered with grey."""
    # The file of a picture may have the sign in its name, too.
    picture, colon, place = name.rpartition(":")
    return f"{picture}{colon}{place.partition(SIGN)[0]}{SIGN}{GREY}"
