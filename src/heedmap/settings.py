"""Everything a run depends on, as it stands in its settings.toml. Unknown keys are errors."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heedmap.errors import InputError

# A bound of the memory: who ran out of it goes on with a smaller one. What is drawn for a text does not
# depend on its batch, so that only the rounding differs: the last digits of a float32, a rank where two are
# that close, and now and then the path of a search (of 20 texts of MiniLM none, of 42 of tiny models one, by
# .008 nats). Each table says which bound it was made with, and `about` in findings.json all of them.
FREE = ("model.batch_tokens",)
# The bounds keep out what no memory holds; a whole number in TOML has 64 bits.
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Size = Annotated[int, Field(ge=1, le=65_536)]  # of vectors
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Checked settings.

        Raises:
            InputError: the first value that does not fit, and what was expected.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or cls.__name__
            raise InputError(f"{name} = {first['input']!r}: {first['msg'].lower()}") from error

    def difference(self, other: Self) -> list[str]:
        """`name: mine -> other's` for every setting that differs."""
        mine, theirs = _flat(self.model_dump(mode="json")), _flat(other.model_dump(mode="json"))
        names = sorted(mine.keys() | theirs.keys())
        return [
            f"{name}: {mine.get(name)!r} -> {theirs.get(name)!r}"
            for name in names
            if mine.get(name) != theirs.get(name) and name not in FREE
        ]


class DataSettings(_Settings):
    """Where the texts come from and how they become tokens.

    `raw`: tokens keep their case and the white space before them, so that joined they are the text, as a
    transformer's own tokenizer wants it. Without `training` only texts to test on are wanted: the test
    split, or all of them. `classes`: how the data spell a given model's outputs, in their order. `query`: the
    column of the text that `text` is read given. `dataset`: a paper's, with its columns, labels and filters;
    `rules`: the paper's, or those of its released code where they differ. `train_texts` and `test_texts` (dev's
    too) draw samples.
    """

    source: Annotated[str, Field(min_length=1)]
    text: str | None = None
    label: str | None = None
    query: str | None = None
    dataset: str | None = None
    rules: Literal["paper", "code"] = "paper"
    tokenizer: Literal["words", "spaces"] = "words"
    min_tokens: Positive = 1
    max_tokens: Positive = 512
    train_texts: Positive | None = None
    test_texts: Positive | None = None
    seed: Seed = 0
    raw: bool = False
    training: bool = True
    classes: tuple[str, ...] | None = None


class ModelSettings(_Settings):
    """An attention model: sizes are those of Jain & Wallace.

    `log_odds`: the attention is not learned but fixed, by the words' coefficients in a logistic regression.
    """

    encoder: Literal["lstm", "cnn", "average"] = "lstm"
    score: Literal["additive", "dot", "log_odds"] = "additive"
    normaliser: Literal["softmax", "sparsemax", "entmax15"] = "softmax"
    embedding_size: Size = 300
    hidden_size: Annotated[Size, Field(ge=4)] = 128


PLAIN = ("row", "received")  # views that are a layer's own weights; the others are made of them
SLOW = ("flow",)  # a maximum flow for every text, word and weighting: no search can ask for so many


class TransformerSettings(_Settings):
    """A Hugging Face sequence classifier, and which of its heat maps is on trial.

    `weights` is a hash of the model's parameters: the same path may hold another model tomorrow.
    """

    source: Annotated[str, Field(min_length=1)]
    weights: str = ""
    layer: int = -1
    head: Literal["mean"] | int = "mean"
    view: Literal["row", "received", "rollout", "flow", "gradient", "effective"] = "row"
    long_texts: Literal["cut", "windows"] = "cut"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    batch_tokens: Annotated[int, Field(ge=1, le=2**18)] = 2048

    @property
    def derived(self) -> bool:
        """Whether the heat map is made of the layer's weights and more, and is not these weights."""
        return self.view not in PLAIN

    def on_trial(self, layers: int, heads: int) -> tuple[int, int | None]:
        """The numbers of the layer and the head (None for the mean) in a model of so many.

        Raises:
            InputError: it has no such layer or head.
        """
        layer = self._place(self.layer, layers, "layer")
        return layer, None if self.head == "mean" else self._place(self.head, heads, "head")

    def _place(self, wanted: int, count: int, what: str) -> int:
        if not -count <= wanted < count:
            raise InputError(
                f"{self.source}: expected a {what} from 0 to {count - 1} (or -1, the last one), got {wanted}"
            )
        return wanted % count


class TrainSettings(_Settings):
    """How a model is trained. `first_epoch`: whether it may be the best one (the released code forbids it).

    `vectors_hash` is that of the file's bytes: None in runs made before it was kept.
    """

    seed: Seed = 0
    epochs: Positive = 8
    batch_size: Positive = 32
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 1e-5
    min_df: Positive = 2
    vectors: str | None = None
    vectors_hash: str | None = None
    first_epoch: bool = True


class FineTuneSettings(_Settings):
    """How a pretrained transformer is fine-tuned: AdamW, linear decay after a warm-up."""

    base: Annotated[str, Field(min_length=1)]
    seed: Seed = 0
    epochs: Positive = 3
    batch_size: Positive = 32
    learning_rate: Annotated[float, Field(gt=0)] = 3e-5
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    max_positions: Positive = 128


class AuditSettings(_Settings):
    """What is asked of the attention.

    `instances` bounds the number of test texts: a larger test split is sampled, and the report says so; the
    other `_instances` bound the sample of the slow experiments. `gradient_path`: whether the gradient flows
    through the attention ("open") or the attention is held fixed ("closed", the paper's). `leave_one_out`:
    the word is removed, or masked. `gradient_of`: the log-odds of the predicted class, or its probability,
    whose gradient is 0 where it rounds to 1. `search_…`: of the search for adversarial attention, where there
    is no exact way; `descent_steps`: of the paper's own, 0 for models that are too slow for it.
    """

    seed: Seed = 0
    instances: Positive = 2000
    permutations: Annotated[int, Field(ge=1, le=10_000)] = 100
    epsilon: Annotated[float, Field(gt=0, lt=1)] = 0.01
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
    integrated_gradients_instances: Positive = 300
    gradient_path: Literal["closed", "open"] = "closed"
    gradient_of: Literal["log-odds", "probability"] = "log-odds"
    gradient_form: Literal["times-input", "norm"] = "times-input"
    leave_one_out: Literal["remove", "mask"] = "remove"
    search_instances: Positive = 300
    search_restarts: Positive = 4
    search_steps: Positive = 30
    descent_steps: Annotated[int, Field(ge=0)] = 500
    scan_instances: Positive = 300


class RunSettings(_Settings):
    """One run: data, model, training, and the audit once there is one."""

    version: Literal[1] = 1
    fingerprint: str
    data: DataSettings
    model: ModelSettings | TransformerSettings
    train: TrainSettings | FineTuneSettings | None = None
    audit: AuditSettings | None = None

    def to_toml(self) -> str:
        """The text of settings.toml; values that are None are left out."""
        return tomli_w.dumps(self.model_dump(exclude_none=True, mode="json"))

    @classmethod
    def read(cls, path: Path) -> "RunSettings":
        """Settings from a file.

        Raises:
            InputError: unreadable, of another version, or with a key or value that does not fit.
        """
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            said = str(error).splitlines()[0]
            raise InputError(f"{path}: cannot be read as settings ({said})") from error
        if values.get("version") != 1:
            raise InputError(
                f"{path}: written by another version (format {values.get('version')!r}, expected 1); "
                "make the run again from its data, with --overwrite"
            )
        try:
            return cls.of(**values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
