"""Lists of pictures in memory as a table, with the labels that were given beside them."""

from typing import Any

import pandas as pd

from heedmap.data.columns import Rows
from heedmap.data.encoded_pictures import (
    check_picture,
    described,
    is_single_picture,
    may_be_picture,
)
from heedmap.data.labels import is_missing
from heedmap.errors import InputError, KindError


def pictures_in(data: Any) -> list[Any] | None:
    """Return a list, column or stack of pictures, of which the first that is there says so; None for others.

    Raises:
        KindError: one picture alone.
    """
    if is_single_picture(data):
        raise KindError(
            f"expected a list of pictures, got one, {described(data)}; put it into a list: [picture]"
        )
    if not (isinstance(data, list | tuple | pd.Series) or may_be_picture(data)):
        return None
    first = next((thing for thing in data if thing is not None), None)
    return list(data) if may_be_picture(first) else None


def table_of_pictures(pictures: list[Any], labels: list[Any] | None) -> Rows:
    """Return a list of pictures as a table, with its labels beside it.

    Raises:
        InputError: one that is no picture, or another number of labels.
    """
    if labels is not None and len(labels) != len(pictures):
        raise InputError(
            f"expected a label for each picture, got {len(labels)} for {len(pictures)} pictures"
        )
    for index, picture in enumerate(pictures):
        if not is_missing(picture):
            try:
                check_picture(picture)
            except ValueError as error:
                raise InputError(f"picture {index} of the list: {error}") from error
    columns = {"image": pictures} | ({} if labels is None else {"label": labels})
    return Rows(
        list(columns), len(pictures), columns.__getitem__, place_of="pictures, index {}".format
    )
