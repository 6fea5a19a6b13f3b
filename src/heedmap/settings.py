"""The settings that a run depends on, as in its settings.toml. Unknown keys are errors."""

import codecs
import os
import tomllib
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_serializer,
    field_validator,
    model_serializer,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from heedmap.errors import InputError, expected
from heedmap.nouns import TEXTS, Nouns

# May change on resume, for example after running out of memory. Random numbers do not depend on the batch, so
# results differ by rounding only: in the last digits of a float32, in a rank between close values, and rarely
# in the path of a search (none of 20 texts of MiniLM, one of 42 of tiny models, by .008 nats). Each table
# records the value it was made with, and `about` in findings.json lists them all.
FREE = ("model.batch_tokens",)
# How many texts are drawn. The number of a text is the same however many there are.
BUDGET = ("minutes", "drawn", "unasked")
# The bounds exclude sizes that fit in no memory; an integer in TOML has 64 bits.
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Size = Annotated[int, Field(ge=1, le=65_536)]  # of vectors
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


def option(
    help: str,
    default: Any = ...,
    *,
    shown: str | None = None,
    also: str | None = None,
    several: bool = False,
) -> Any:
    """Make a field that is an option of commands and a keyword of functions, by the field's name.

    Args:
        help: its text in a command's help, without the default.
        default: the value if the option is not given.
        shown: the default in words, where it depends on the data or the model.
        also: another name of the command's option.
        several: whether the command's option may be given several times.
    """
    extra: dict[str, Any] = {"shown": shown, "also": also, "several": several}
    return Field(default, description=help, json_schema_extra=extra)


class Settings(BaseModel):
    """Validated, frozen values; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def options(cls) -> dict[str, FieldInfo]:
        """Return the fields that users can set."""
        return {name: field for name, field in cls.model_fields.items() if field.description}

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Make validated settings.

        Raises:
            InputError: names the first invalid value and what was expected.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            name = ".".join(str(part) for part in error.errors()[0]["loc"]) or cls.__name__
            said, value = expected(error)
            raise InputError(f"{name} = {value!r}: {said}") from error

    def flat(self) -> dict[str, Any]:
        """Return all settings by name, those of a part as `part.name`, as values of JSON."""
        return _flat(self.model_dump(mode="json"))

    def difference(self, settings: Self) -> list[str]:
        """Return `name: mine -> other's` for every setting that differs."""
        mine, theirs = self.flat(), settings.flat()
        names = sorted(mine.keys() | theirs.keys())
        return [
            f"{name}: {mine.get(name)!r} -> {theirs.get(name)!r}"
            for name in names
            if mine.get(name) != theirs.get(name) and name not in FREE
        ]


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
_OF_CLASSES = (("output", None), ("threshold", 0.5), ("unit", None))


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


class OptionSubset:
    """The options of a settings class, without those that a command or a function does not have."""

    def __init__(self, settings: type[Settings], *without: str) -> None:
        self.settings, self._without = settings, without

    def options(self) -> dict[str, FieldInfo]:
        """Return the remaining fields."""
        return {n: field for n, field in self.settings.options().items() if n not in self._without}


# Options for reading the texts of our own models, and of transformers, which read uncut texts.
_ASKING = ("asked", "foil")
TOKENS = OptionSubset(DataSettings, "classes", "side", "first", *_ASKING)
_TOKENS_ONLY = ("dataset", "rules", "train_texts", "test_texts")
RAW_TEXTS = OptionSubset(DataSettings, *_TOKENS_ONLY)
RAW_TEXTS_TO_LEARN = OptionSubset(DataSettings, "classes", *_ASKING, *_TOKENS_ONLY)
_WAY_OF_READING = ("markup", "encoding", "separator", "quotes", "header")
READING = OptionSubset(DataSettings, *(DataSettings.options().keys() - {*_WAY_OF_READING}))
"""How the file of the texts is read, without its columns."""


class ModelSettings(Settings):
    """An attention model, by default with the sizes of Jain & Wallace.

    Texts of sentences have two levels of it, each with this encoder, score and normaliser.

    `log_odds`: attention fixed by the words' coefficients in a logistic regression, not learned. `marks`: an
    encoder that reads the marks at both ends of a text does so. `sigmoid`: two classes share one output.
    """

    encoder: Literal["lstm", "cnn", "average", "gru", "small-cnn", "mlp", "none"] = option(
        "Encoder that reads the words in their order; average, mlp and none read each by itself.",
        "lstm",
        shown="lstm; of bags mlp",
    )
    score: Literal["additive", "wide-additive", "gated", "dot", "linear", "uniform", "log_odds"] = (
        option(
            "Function that scores a word for its weight; uniform and log_odds are fixed: nothing is "
            "learned.",
            "additive",
            shown="additive; of bags gated",
        )
    )
    normaliser: Literal["softmax", "sparsemax", "entmax15"] = option(
        "Function that turns scores into weights.", "softmax"
    )
    maps: Literal["shared", "per-class"] = option(
        "Whether all classes share one map of weights, or each class has its own.", "shared"
    )
    embedding_size: Size = option("Size of the word embeddings, unless --vectors sets it.", 300)
    hidden_size: Annotated[Size, Field(ge=4)] = option("Size of the encoder's states.", 128)
    marks: bool = True
    sigmoid: bool = True

    @model_serializer(mode="wrap")
    def _leave_out_shared_maps(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write no shared map, which all models once had, so that the hashes of their settings stay."""
        values: dict[str, Any] = serialize(self)
        return {
            name: value for name, value in values.items() if (name, value) != ("maps", "shared")
        }


Renormalise = Literal["scale", "again"]
PLAIN = ("row", "received")  # views that are a layer's own weights; others are derived from them
SLOW = ("flow",)  # a maximum flow per text, word and weighting: too slow for a search


UNLIMITED_WORDS = 1_000_000  # of a transformer's texts, which it cuts or reads in windows itself
MODEL_IN_MEMORY = "memory:"  # begins the source of a model that was given as an object


class TransformerSettings(Settings):
    """A Hugging Face sequence classifier, and which of its heat maps is on trial.

    `weights` is a hash of the model's parameters, since the model at a path may change. A model that was given
    as an object has a hash for a source, and is kept in its run's folder.
    """

    source: Annotated[str, Field(min_length=1)]
    weights: str = ""
    layer: int = option("Layer whose weights are on trial; -1 is the last.", -1)
    head: Literal["mean"] | int = option(
        "Head whose weights are on trial: its number, or mean for the mean of all heads.", "mean"
    )
    view: Literal["row", "received", "rollout", "flow", "gradient", "effective"] = option(
        "Heat map on trial: the attention row that the classifier reads, or another view.",
        "row",
    )
    long_texts: Literal["cut", "windows"] = option(
        "Cut texts that are longer than the model reads, or read them in windows.", "cut"
    )
    output: str | None = option(
        "Label that is audited, of a model that gives several at once.", None, shown="each"
    )
    threshold: Annotated[float, Field(gt=0, lt=1)] = option(
        "Probability from which on such a label counts as predicted.", 0.5
    )
    unit: str | None = option(
        "What the number counts that a model gives (a regression): stars, points ...",
        None,
        shown="the name of its output",
    )
    dtype: Literal["float32", "float16", "bfloat16"] = option(
        "Number format of the weights; in short ones the words tie in leave-one-out.", "float32"
    )
    batch_tokens: Annotated[int, Field(ge=1, le=2**18)] = option(
        "Maximum positions per batch: bounds the memory.", 2048
    )

    @model_serializer(mode="wrap")
    def _leave_out_of_labels(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write nothing of outputs for a model of classes, so that the hashes of its settings stay."""
        values: dict[str, Any] = serialize(self)
        return {name: x for name, x in values.items() if (name, x) not in _OF_CLASSES}

    @field_validator("head", mode="before")
    @classmethod
    def _check_head(cls, value: object) -> object:
        if str(value) != "mean" and not str(value).lstrip("-").isdigit():
            raise PydanticCustomError("head", "expected a head's number or mean")
        return value

    @property
    def in_memory(self) -> bool:
        """Return whether the model was given as an object."""
        return self.source.startswith(MODEL_IN_MEMORY)

    @property
    def derived(self) -> bool:
        """Return whether the heat map is derived from the layer's weights instead of equal to them."""
        return self.view not in PLAIN

    def on_trial(self, layers: int, heads: int) -> tuple[int, int | None]:
        """Return the numbers of the layer and the head (None for the mean) in a model of this size.

        Raises:
            InputError: the model has no such layer or head.
        """
        layer = self._index(self.layer, layers, "layer")
        return layer, None if self.head == "mean" else self._index(self.head, heads, "head")

    def _index(self, number: int, count: int, kind: str) -> int:
        if not -count <= number < count:
            raise InputError(
                f"{self.source}: expected a {kind} from 0 to {count - 1} (or -1, the last one), got {number}"
            )
        return number % count


ON_TRIAL = OptionSubset(
    TransformerSettings, "long_texts", "output", "threshold", "unit", "dtype", "batch_tokens"
)


class ArraysSettings(Settings):
    """A model of which arrays are known alone: weights, and what each item says for each class.

    `rows`: of weights, per instance. `reading`: a function reads changed items again. `weights`: a hash of the
    arrays.
    """

    rows: Positive
    reading: bool
    weights: str

    @property
    def description(self) -> str:
        """Describe the model in one line."""
        rows = "one row" if self.rows == 1 else f"{self.rows} rows"
        read = "with" if self.reading else "without"
        return f"arrays: {rows} of weights, a linear read-out, {read} a function that reads again"


class PoolingSettings(Settings):
    """A user's module that pools the items of bags. `layer` gives the scores that its weights are made of.

    `module` is the module's class, `weights` a hash of its parameters. `per_class`: whether each class has
    its own row of weights.
    """

    module: str
    layer: str
    rows: Positive
    per_class: bool
    weights: str

    @property
    def description(self) -> str:
        """Describe the model in one line."""
        kind = " for each class" if self.per_class else "s" if self.rows > 1 else ""
        count = "a row" if self.per_class or self.rows == 1 else f"{self.rows} row"
        return f"{self.module}: {count}{kind} of weights from the scores of {self.layer}"


AnyModelSettings = ModelSettings | TransformerSettings | ArraysSettings | PoolingSettings


class TrainSettings(Settings):
    """How a model is trained. `first_epoch`: whether it may be the best one (not in the released code).

    `vectors_hash` is the hash of the file's bytes. `amsgrad` is of Adam.
    `selection` is the dev score by which the best epoch is chosen; ROC AUC is that of two classes.
    """

    seed: Seed = option("Seed of the weights and of the order of the texts.", 0)
    epochs: Positive = option(
        "Passes over the training texts; a model of our own stops at a perfect dev score.",
        8,
        shown="8; pairs and bags 25; fine-tuning 3",
    )
    batch_size: Positive = option("Texts per step.", 32, shown="32; pairs 100")
    learning_rate: Annotated[float, Field(gt=0)] = option(
        "Adam learning rate.", 1e-3, shown="0.001; fine-tuning 0.00003"
    )
    weight_decay: Annotated[float, Field(ge=0)] = option(
        "L2 penalty on all parameters except the attention's.",
        1e-5,
        shown="0.00001; fine-tuning 0.01",
    )
    min_df: Positive = option("Minimum document frequency of a word.", 2)
    vectors: str | None = option(
        "File of word vectors: a line `word v1 v2 ...` per word, .gz too.", None
    )
    vectors_hash: str | None = None
    first_epoch: bool = True
    amsgrad: bool = True
    selection: Literal["roc_auc", "accuracy"] = "roc_auc"
    record_dynamics: bool = option(
        "Record attention, relevance and influence while training.", False
    )


class FineTuneSettings(Settings):
    """How a pretrained transformer is fine-tuned: AdamW with warm-up and linear decay."""

    base: Annotated[str, Field(min_length=1)]
    seed: Seed = option("Seed of the weights and of the order of the texts.", 0)
    epochs: Positive = option("Passes over the training texts.", 3)
    batch_size: Positive = option("Texts per step.", 32)
    learning_rate: Annotated[float, Field(gt=0)] = option("AdamW learning rate.", 3e-5)
    weight_decay: Annotated[float, Field(ge=0)] = option("AdamW weight decay.", 0.01)
    max_positions: Positive = option(
        "Maximum sub-words of a text in training; longer texts are cut.", 128
    )


def _names(value: object) -> object:
    """Take a single name for a list of one, and no names for none."""
    if isinstance(value, str | Path):
        return (str(value),)
    return tuple(map(str, value)) or None if isinstance(value, list | tuple) else value


Names = Annotated[tuple[str, ...] | None, BeforeValidator(_names)]


def _minutes(value: object) -> object:
    """Take a number of minutes as it is written on a command line."""
    if value is None or value == "all":
        return value
    try:
        minutes = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        minutes = 0.0
    if isinstance(value, bool) or not 0 < minutes < float("inf"):
        raise PydanticCustomError("minutes", "expected minutes above 0, such as 10 or 0.5, or all")
    return minutes


Minutes = Annotated[float | Literal["all"] | None, BeforeValidator(_minutes)]


class AuditSettings(Settings):
    """How attention is audited.

    `instances` bounds the number of test texts: a larger test split is sampled, and the report says so. The
    other `_instances` bound the samples of slow experiments. `gradient_path`: the gradient flows through the
    attention ("open") or the attention is held fixed ("closed", as in the paper). `leave_one_out`: the word
    is removed or masked. `gradient_of`: the log-odds of the predicted class, or its probability, whose
    gradient vanishes where it rounds to 1. `search_…`: the search for adversarial attention where there is no
    exact method; `descent_steps`: steps of the paper's search, 0 for models that are too slow for it.
    `random_item`: see `heedmap.experiments.questions.erasure`; `renormalise`:
    `heedmap.experiments.methods.erasure_predictions`. `minutes`: see `heedmap.experiments.budget`; `drawn` is
    how many texts were drawn in this time, and `unasked` are the questions that it was too short for (None:
    not known yet).
    """

    seed: Seed = option("Seed of the split, the weights and the experiments.", 0)
    instances: Positive = option("Audit at most this many test texts.", 2000)
    minutes: Minutes = option(
        "Draw texts one after another until the bottom line is certain or these minutes are over, then ask the "
        "other questions that there is time for; all to ask all texts everything.",
        None,
        shown="10 for a transformer whose audit would take one core longer, else all",
    )
    drawn: Positive | None = option(
        "Draw this many texts as --minutes does, to repeat an audit that stopped after as many.",
        None,
    )
    unasked: tuple[str, ...] | None = None
    permutations: Annotated[int, Field(ge=1, le=10_000)] = option(
        "Random shuffles of the weights per text.", 100
    )
    epsilon: Annotated[float, Field(gt=0, lt=1)] = option(
        "Total variation distance up to which two predictions count as the same, of numbers in standard "
        "deviations of the outputs.",
        0.01,
        shown=".01; pairs .05",
    )
    curve: tuple[Annotated[float, Field(ge=0, lt=1)], ...] = (
        0.0,
        0.001,
        0.005,
        0.01,
        0.02,
        0.05,
        0.1,
    )
    integrated_gradients_steps: Positive = 16
    integrated_gradients_instances: Positive = option(
        "Sample this many texts for integrated gradients, which are slow.",
        60,
        also="integrated-gradients",
    )
    gradient_path: Literal["closed", "open"] = option(
        "Let the gradient flow through the attention (open), or hold the attention fixed (closed).",
        "closed",
        shown="closed; transformers open",
    )
    gradient_of: Literal["log-odds", "probability"] = option(
        "Quantity that is differentiated: the log-odds or the probability of the predicted class.",
        "log-odds",
    )
    leave_one_out: Literal["remove", "mask"] = option(
        "Remove the word, or replace it by the mask token.", "remove"
    )
    search_instances: Positive = 300
    search_restarts: Positive = 4
    search_steps: Positive = 30
    descent_steps: Annotated[int, Field(ge=0)] = 500
    scan_instances: Positive = 300
    random_item: Literal["paper", "code"] = option(
        "Word erased for comparison: any other one (paper), or any but the first (code).", "paper"
    )
    renormalise: Renormalise = option(
        "Scale the weights that an erasure leaves, or normalise their scores again.", "scale"
    )
    other_seed: Names = option(
        "Run of the same training with another seed, in which the answer is checked too; one or several.",
        None,
        several=True,
    )

    @property
    def is_drawn(self) -> bool:
        """Return whether texts are drawn one after another."""
        return self.drawn is not None or self.minutes not in (None, "all")

    def refuse_drawn(self, option: str) -> None:
        """Raise InputError if texts are drawn one after another, which this option does not go with."""
        if self.is_drawn:
            raise InputError(
                f"{option}: expected an audit of all texts, got one with a budget, which draws one text after "
                f"another; leave out {option}, or --minutes and --drawn (of a transformer give --minutes all)"
            )

    def is_same_but_for_budget(self, other: "AuditSettings") -> bool:
        """Return whether two audits ask the same of each text."""
        without = dict.fromkeys(BUDGET)
        return self.model_copy(update=without) == other.model_copy(update=without)

    @field_serializer("other_seed")
    def _keep_one(self, names: tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        """Write a single run as its name, as in settings of versions that took only one."""
        return names[0] if names is not None and len(names) == 1 else names


def _numbers(value: object) -> object:
    parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    try:
        numbers = tuple(float(part) for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or not all(0 <= number < float("inf") for number in numbers):
        raise PydanticCustomError("numbers", "expected numbers from 0, with commas: 0,0.1,1")
    return numbers


Strengths = Annotated[tuple[float, ...], BeforeValidator(_numbers)]  # of penalties


class RetrainSettings(Settings):
    """Which further models are trained, to be compared with the run's.

    `guided` is the encoder of the model that is guided by others' weights. `lambdas` are of the trained
    adversary, `penalties` of the deception. `forbidden` are the impermissible words, or a file of them, one
    per line, or `marked`: the tokens that the data mark.
    """

    seeds: Annotated[int, Field(ge=2, le=100)] = option("Trainings of each kind; at least two.", 5)
    lambdas: Strengths = option(
        "Strengths of the trained adversary's penalty, besides 0.",
        (0.0003, 0.001, 0.003, 0.01),
        shown="0.0003,0.001,0.003,0.01",
    )
    adversary_epochs: Positive = option("Maximum epochs of the trained adversary.", 30)
    patience: Positive = option(
        "Stop the adversary after this many epochs without a better one.", 10
    )
    forbidden: str | None = option(
        "Impermissible words: he,she,..., a file of them, or marked for the words that the data mark.",
        None,
    )
    penalties: Strengths = option(
        "Strengths of the penalty on attention to impermissible words, besides 0.",
        (0.1, 1.0),
        shown="0.1,1",
    )
    heads: Literal["mean", "max", "both"] = option(
        "Penalise a transformer's mean over the heads, or the head that shows most.", "mean"
    )
    rule: Literal["paper", "code"] = option(
        "How the deceptive checkpoint is chosen: least attention with accuracy within 2 %, or most accurate.",
        "paper",
    )


GuideWeights = Literal["attention", "gradient", "leave_one_out", "read_out"]
"""A guide's own weights, or its importances scaled to sum to 1."""


class GuideSettings(Settings):
    """What a guided model reads a text with: weights of another model, whose settings are `model`."""

    weights: GuideWeights
    model: ModelSettings

    @property
    def description(self) -> str:
        """Say whose weights the model reads with."""
        name = "map" if self.weights == "attention" else self.weights.replace("_", "-")
        return f"guided by the {name} of another model ({self.model.encoder}, {self.model.score})"


class RunSettings(Settings):
    """One run: data, model, training, and the audit if there is one.

    `variant` names a model that another training than `train` alone made, such as an adversary. `guide` is
    what one reads with that has learned no weights. `parent` is the folder of the run that it was trained for,
    also of another seed or a uniform twin, which are no `variant`: `train` says all of them. As a place it is
    no part of what the run is.
    """

    version: Literal[1] = 1
    fingerprint: str
    data: DataSettings
    model: AnyModelSettings
    train: TrainSettings | FineTuneSettings | None = None
    audit: AuditSettings | None = None
    variant: str | None = None
    guide: GuideSettings | None = None
    parent: str | None = None

    @property
    def nouns(self) -> Nouns:
        """Return what the run's instances and their items are called."""
        return self.data.nouns or TEXTS

    @property
    def is_uniform(self) -> bool:
        """Whether the model was trained with the same weight for all words, and no other."""
        is_own = isinstance(self.model, ModelSettings) and self.guide is None
        return is_own and getattr(self.model, "score", "") == "uniform"

    def to_toml(self) -> str:
        """Return the text of settings.toml, without values that are None."""
        return tomli_w.dumps(self.model_dump(exclude_none=True, mode="json"))

    @classmethod
    def read(cls, path: Path) -> "RunSettings":
        """Read settings from a file.

        Raises:
            InputError: the file is unreadable, not of a run or of another version, or has an invalid key or
                value.
        """
        try:
            if path.exists() and not path.is_file():  # a pipe would be waited for
                raise OSError("not a regular file")
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            message = str(error).splitlines()[0]
            raise InputError(f"{path}: cannot be read as settings ({message})") from error
        if not isinstance(values.get("version"), int):
            raise InputError(
                f"{path}: expected the settings of a run, found a file of another program, or an emptied one; "
                "name a run's folder, or bring the file back"
            )
        if values["version"] != 1:
            raise InputError(
                f"{path}: written by another version (format {values['version']}, expected 1); "
                "make the run again from its data, with --overwrite"
            )
        try:
            return cls.of(**values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def _codec(name: str) -> str:
    """Return the name that Python has for an encoding of texts."""
    "".encode(name)  # raises for codecs that are of bytes, or of nothing
    b"\xff".decode(name, errors="replace")  # raises for those of names of hosts
    return codecs.lookup(name).name


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
