"""Where texts come from and how they become tokens, and which of these options a command has."""

import codecs
import os
from numbers import Integral
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer
from pydantic_core import PydanticCustomError

from heedmap.nouns import Nouns
from heedmap.settings.base import OptionSubset, Positive, Seed, Settings, option

_OF_TEXTS = (
    ("nouns", None),
    ("side", "text"),
    ("first", None),
    ("labels_read", True),
    ("asks", None),
    ("asked", "labelled"),
    ("foil", None),
    ("amounts", False),
)


class DataSettings(Settings):
    """Where the texts come from and how they become tokens.

    `raw`: tokens keep their case and the white space before them, so that joined they are the text, as a
    transformer's tokenizer expects. Without `labels_read` the labels of the data are left aside. With
    `amounts` labels are numbers, not classes. Without `training` only test texts are read: the test split, or
    all texts.
    `classes`: the data's labels for a model's outputs, in the outputs' order. `query`: the column of a
    question or hypothesis about `text`; `side` and `first` are a transformer's, which reads both texts as one
    sequence. `dataset`: a paper's data set, with its columns, labels and filters;
    `rules`: the paper's, or its released code's where they differ. `asks`: what a transformer is asked that
    answers at each position: the labels of words, or the words that masks hide. `train_texts` and `test_texts`
    (also dev) are sample sizes. `nouns`: what its instances and their items are called, where they are no texts
    of words.
    """

    source: Annotated[str, Field(min_length=1)]
    text: str | None = option(
        "Column of the text, or several to join: title,content.",
        None,
        shown="guessed",
        also="text-column",
    )
    label: str | None = option("Column of the label.", None, shown="guessed", also="label-column")
    query: str | None = option(
        "Column of a question or hypothesis that the text is read given.", None, also="query-column"
    )
    side: Literal["text", "query", "both"] = option(
        "Text of a pair that a --model's heat map is over: the text, the query, or both.", "text"
    )
    first: Literal["text", "query"] | None = option(
        "Which text of a pair a --model reads first: that of --text-column or that of --query-column.",
        None,
        shown="the column that stands first",
    )
    foil: str | None = option(
        "Column of the foil, the word that a masked language model might take for the hidden one.",
        None,
        shown="guessed",
        also="foil-column",
    )
    asked: Literal["labelled", "all"] = option(
        "Words that a --model of token classification is asked about: all but those labelled O, or all.",
        "labelled",
    )
    id: str | None = option(
        "Column of the texts' own ids.", None, shown="guessed", also="id-column"
    )
    markup: Literal["keep", "text"] = option(
        "Keep HTML tags and entities, or turn them into text.", "keep"
    )
    encoding: str | None = option(
        "Encoding of a CSV or text file: utf-8, cp1252, utf-16-le, mac-roman ...",
        None,
        shown="found",
    )
    separator: str | None = option(
        "Character between the fields of a CSV file: ',', ';', '|' or tab.", None, shown="found"
    )
    quotes: Literal["none", "double"] | None = option(
        "Quotes of a CSV file: none if they belong to the texts, double if they enclose fields.",
        None,
        shown="found",
    )
    header: Literal["none"] | None = option(
        "Set to none if the first line of a CSV or Excel file is a row; columns are then named 1, 2, ...",
        None,
        shown="the first line",
    )
    dataset: str | None = option(
        "Read the data as a paper's data set: sst, imdb, adr, news20_baseball_hockey, ag_news, diabetes, "
        "anemia, cnn, snli, babi_qa1, babi_qa2, babi_qa3, imdb-10, yahoo, amazon, yelp.",
        None,
    )
    rules: Literal["paper", "code"] = option(
        "Select the texts of a --dataset as the paper describes it, or as its released code does.",
        "paper",
    )
    tokenizer: Literal["words", "spaces", "sentences"] = option(
        "Split raw text into words, tokenised text at its spaces, or text into sentences, which get weights.",
        "words",
    )
    min_tokens: Positive = option("Leave out texts of fewer tokens.", 1)
    max_tokens: Positive = option(
        "Cut texts of more tokens.",
        512,
        shown="512; none of a --dataset's or a story; a transformer's own limit",
    )
    train_texts: Positive | None = option("Sample this many training texts.", None)
    test_texts: Positive | None = option(
        "Sample this many test texts, and this many dev texts.", None
    )
    seed: Seed = option("Seed of the split, the weights and the experiments.", 0)
    raw: bool = False
    training: bool = True
    labels_read: bool = True
    amounts: bool = False
    classes: tuple[str, ...] | None = option(
        "Labels of the data for a --model's outputs, in the order of the outputs: no,yes.", None
    )
    nouns: Nouns | None = None
    asks: Literal["words", "masks"] | None = None

    @model_serializer(mode="wrap")
    def _leave_out_of_other_kinds(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write nothing of other kinds for labelled texts of words, so that the hashes of these stay."""
        values: dict[str, Any] = serialize(self)
        return {name: x for name, x in values.items() if (name, x) not in _OF_TEXTS}

    @field_validator("source")
    @classmethod
    def _expand(cls, value: str) -> str:
        return os.path.expanduser(value)  # as the shell does, but for a quoted ~

    @field_validator("text", "label", "query", "foil", "id", mode="before")
    @classmethod
    def _name_column(cls, value: Any) -> Any:
        if isinstance(value, Integral) and not isinstance(value, bool):
            return str(value)  # a frame without names numbers its columns
        if isinstance(value, list | tuple) and value:
            names = ",".join(map(str, value))
            raise PydanticCustomError(
                "column",
                "expected a string; texts of several columns are joined with text={names}",
                {"names": repr(names)},
            )
        return value

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, value: str | None) -> str | None:
        try:
            return None if value is None else _codec(value)
        except (LookupError, ValueError) as error:
            raise PydanticCustomError(
                "encoding", "expected the name of an encoding, such as utf-8, cp1252 or utf-16"
            ) from error

    @field_validator("separator")
    @classmethod
    def _check_separator(cls, value: str | None) -> str | None:
        value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
        if value is None or (len(value) == 1 and value.isascii() and value not in '"\r\n'):
            return value
        raise PydanticCustomError(
            "separator", "expected one plain character, such as ; or |, or tab"
        )


# Options for reading the texts of our own models, and of transformers, which read uncut texts.
_ASKING = ("asked", "foil")
TOKENS = OptionSubset(DataSettings, "classes", "side", "first", *_ASKING)
_TOKENS_ONLY = ("dataset", "rules", "train_texts", "test_texts")
RAW_TEXTS = OptionSubset(DataSettings, *_TOKENS_ONLY)
RAW_TEXTS_TO_LEARN = OptionSubset(DataSettings, "classes", *_ASKING, *_TOKENS_ONLY)
_WAY_OF_READING = ("markup", "encoding", "separator", "quotes", "header")
READING = OptionSubset(DataSettings, *(DataSettings.options().keys() - {*_WAY_OF_READING}))
"""How the file of the texts is read, without its columns."""


def _codec(name: str) -> str:
    """Return the name that Python has for an encoding of texts."""
    "".encode(name)  # raises for codecs that are of bytes, or of nothing
    b"\xff".decode(name, errors="replace")  # raises for those of names of hosts
    return codecs.lookup(name).name
