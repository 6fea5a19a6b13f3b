"""The models that attention is audited of: heedmap's own, transformers, arrays and pooling modules."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer
from pydantic_core import PydanticCustomError

from heedmap.errors import InputError
from heedmap.settings.base import OptionSubset, Positive, Settings, Size, option


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


PLAIN = ("row", "received")  # views that are a layer's own weights; others are derived from them
SLOW = ("flow",)  # a maximum flow per text, word and weighting: too slow for a search
UNLIMITED_WORDS = 1_000_000  # of a transformer's texts, which it cuts or reads in windows itself
MODEL_IN_MEMORY = "memory:"  # begins the source of a model that was given as an object
_OF_CLASSES = (("output", None), ("threshold", 0.5), ("unit", None))


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
