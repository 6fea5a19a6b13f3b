"""How the paper trains and audits each data set, unlike its defaults.

Where the released code differs from the paper (`rules` is "code"), its defaults are the code's.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedmap.settings.data import DataSettings

_BABI = {
    "epochs": 100, "batch_size": 50, "embedding_size": 50, "hidden_size": 32, "min_df": 1,
}  # fmt: skip
RECIPES: dict[str, dict[str, int]] = {
    "sst": {"min_df": 1},
    "imdb": {"min_df": 10},
    "adr": {"min_df": 2},
    "news20_baseball_hockey": {"min_df": 2},
    "ag_news": {"min_df": 5},
    "diabetes": {"min_df": 5},
    "anemia": {"min_df": 5},
    "cnn": {"epochs": 25, "batch_size": 90, "min_df": 8},
    "babi_qa1": _BABI,
    "babi_qa2": _BABI,
    "babi_qa3": _BABI,
    "snli": {"epochs": 25, "batch_size": 128, "min_df": 3},
}
CODE = {"first_epoch": False, "epsilon": 0.05, "gradient_of": "probability"}


def dataset_of(data: "DataSettings") -> str | None:
    """Return the data set that a user named as one of the paper's: not a file or folder that is called so.

    heedmap's own stories are named by their source, which is no file.
    """
    is_generated = RECIPES.get(data.source) is _BABI
    return data.dataset or (data.source if is_generated else None)


def defaults(data: "DataSettings") -> Mapping[str, Any]:
    """Return the paper's options of training and audit for a data set."""
    recipe = RECIPES.get(dataset_of(data) or "", {})
    return recipe | (CODE if data.rules == "code" else {})
