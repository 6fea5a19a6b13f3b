"""What a reproduction of Wiegreffe & Pinter depends on, and their data sets."""

from typing import Annotated

from pydantic import Field

from heedmap.papers.wiegreffe_pinter.published import ADVERSARY_EPOCHS, SEEDS
from heedmap.settings.base import Positive, Settings
from heedmap.settings.data import DataSettings
from heedmap.settings.retraining import Strengths

DATA = {
    "sst": "sst",
    "imdb": "imdb",
    "ag-news": "ag_news",
    "20news": "news20_baseball_hockey",
    "diabetes": "diabetes",
    "anemia": "anemia",
}
"""What a user calls a data set, and its name in the catalogue, whose rules are Jain & Wallace's."""


class WiegreffePinterSettings(Settings):
    """One data set; `lambdas` are our choice.

    A λ of ours is twice the released code's, whose TVD is half of ours: of one sigmoid, not of two classes.
    """

    fingerprint: str
    data: DataSettings
    seeds: Annotated[int, Field(ge=2, le=100)] = SEEDS
    epochs: Positive | None = None
    vectors: str | None = None
    vectors_hash: str | None = None
    lambdas: Strengths = (1e-4, 3e-4, 1e-3, 2e-3, 1e-2)
    adversary_epochs: Positive = ADVERSARY_EPOCHS
    patience: Positive = 10
    test_instances: Positive = 100_000
