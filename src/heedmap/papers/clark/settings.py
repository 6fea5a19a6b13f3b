"""Everything a reproduction of Clark et al. depends on, as in its settings.toml."""

from typing import Annotated

from pydantic import Field

from heedmap.settings.base import Positive, Settings


class ClarkSettings(Settings):
    """The texts are `trees`, by their fingerprint: sentences of our grammar, or of a user's file.

    The paper has 1000 `segments` of at most 128 positions and learns from 36,160 sentences; `seeds` and
    `controls` (draws of the control task for single heads) are ours.
    """

    model: Annotated[str, Field(min_length=1)]
    weights: str
    trees: str
    vectors: str | None = None
    train_sentences: Annotated[int, Field(ge=20, le=1_000_000)] = 2000
    test_sentences: Annotated[int, Field(ge=10, le=1_000_000)] = 500
    segments: Positive = 200
    seeds: Annotated[int, Field(ge=1, le=100)] = 3
    controls: Annotated[int, Field(ge=1, le=1000)] = 20
