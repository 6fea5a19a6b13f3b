"""What becomes of each single text's answer, in the words of the levels.

The rule of the bottom line counts the texts that have deciding words, and in how many of them the map holds
(`heedmap.experiments.rule`). These are the same questions of one text. One text proves nothing about a map;
its level says where to look.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa

from heedmap.experiments.levels import Level
from heedmap.experiments.rule import best_gone, losing_and_holding, texts_of

TextLevel = Level | Literal["not asked"]


def text_levels(tables: Mapping[str, pa.Table]) -> list[TextLevel] | None:
    """Return the level of each text; None if the texts were not read again without the map's words.

    "for": half of the lead is gone without the map's first words, and half stays with the highlighted ones
    alone. "mixed": one of the two. "against": neither, though some third of the words takes half of the lead.
    "cannot tell": no words do. "not asked": the text was not read again without its words.
    """
    if not {"highlights", "alternatives"} <= tables.keys():
        return None
    texts = texts_of(tables)
    is_losing, is_gone, stays = losing_and_holding(texts)
    is_asked = np.isfinite(best_gone(texts, "map"))
    numbers = zip(
        is_asked.tolist(), is_losing.tolist(), (is_gone.astype(int) + stays).tolist(), strict=True
    )
    levels: tuple[Level, ...] = ("against", "mixed", "for")
    return [
        levels[count] if losing else "cannot tell" if read_again else "not asked"
        for read_again, losing, count in numbers
    ]
