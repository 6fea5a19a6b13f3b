"""The options of `heedmap audit` and `heedmap train`, and which of them go together."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError

_DATA, _MODEL, _TRAINING, _AUDIT = "Data", "Model", "Training", "Audit"
_DOOR = "Transformer"


def _option(names: str, text: str, panel: str, **more: Any) -> Any:
    return typer.Option(*names.split(), help=text, rich_help_panel=panel, **more)


def folder(given: object) -> Path:
    """A folder to write to, looked at before anything is done."""
    from heedmap.storage import refuse_file

    return _place(str(given), refuse_file)


def file(given: object) -> Path:
    """A file to write to, looked at before anything is done."""
    from heedmap.storage import refuse_special

    return _place(str(given), refuse_special)


def _place(name: str, check: Callable[[Path], None]) -> Path:
    if not name or "\0" in name:
        raise typer.BadParameter(f"expected a name, got {name!r}")
    try:
        check(Path(name))
    except InputError as error:  # typer would say nothing but the name
        raise typer.BadParameter(str(error)) from error
    return Path(name)


Data = Annotated[
    str | None,
    _option(
        "--data",
        "A CSV, JSONL or Parquet file (.gz too), a folder with train/dev/test files, a Hub name, or the "
        "embedded corpus: reviews, reviews-stars, babi_qa1, babi_qa2, babi_qa3.",
        _DATA,
    ),
]
TextColumn = Annotated[str | None, _option("--text-column", "The text's column. [guessed]", _DATA)]
LabelColumn = Annotated[
    str | None, _option("--label-column", "The label's column. [guessed]", _DATA)
]
QueryColumn = Annotated[
    str | None,
    _option("--query-column", "Of a question or hypothesis that the text is read given.", _DATA),
]
DataSet = Annotated[
    str | None,
    _option(
        "--dataset",
        "Read --data as a paper's data set: sst, imdb, adr, news20_baseball_hockey, ag_news, diabetes, "
        "anemia, cnn, snli, babi_qa1, babi_qa2, babi_qa3.",
        _DATA,
    ),
]
Rules = Annotated[
    str, _option("--rules", "Of a --dataset: the paper's, or its released code's.", _DATA)
]
Tokenizer = Annotated[str, _option("--tokenizer", "words (raw text) or spaces (tokenised).", _DATA)]
MinTokens = Annotated[int, _option("--min-tokens", "Leave out shorter texts.", _DATA)]
MaxTokens = Annotated[
    int | None,
    _option(
        "--max-tokens",
        "Cut longer texts. [512; none of a --dataset's or a story; a transformer's own limit]",
        _DATA,
    ),
]
Classes = Annotated[
    str | None,
    _option("--classes", "How the data spell a --model's outputs, in their order: no,yes.", _DATA),
]
Encoder = Annotated[str, _option("--encoder", "lstm, cnn or average.", _MODEL)]
Score = Annotated[
    str, _option("--score", "additive, dot, or log_odds (fixed: nothing is learned).", _MODEL)
]
Normaliser = Annotated[str, _option("--normaliser", "softmax, sparsemax or entmax15.", _MODEL)]
EmbeddingSize = Annotated[
    int | None, _option("--embedding-size", "Of words without --vectors. [300]", _MODEL)
]
HiddenSize = Annotated[int | None, _option("--hidden-size", "Of the encoder. [128]", _MODEL)]
Vectors = Annotated[
    Path | None, _option("--vectors", "Word vectors: `word v1 v2 ...` a line, .gz too.", _MODEL)
]
MinDf = Annotated[
    int | None,
    _option("--min-df", "Texts that must hold a word for it to be known. [2]", _TRAINING),
]
Epochs = Annotated[
    int | None, _option("--epochs", "Times over the training texts. [8; pairs 25]", _TRAINING)
]
BatchSize = Annotated[
    int | None, _option("--batch-size", "Texts a step. [32; pairs 100]", _TRAINING)
]
LearningRate = Annotated[float, _option("--learning-rate", "Of Adam.", _TRAINING)]
Seed = Annotated[
    int, _option("--seed", "Of the split, the weights and the experiments.", _TRAINING)
]
Transformer = Annotated[
    str | None,
    _option("--model", "A Hugging Face classifier: its folder or its name on the Hub.", _DOOR),
]
Layer = Annotated[int, _option("--layer", "Whose weights are on trial; -1 is the last.", _DOOR)]
Head = Annotated[str, _option("--head", "A head's number, or mean.", _DOOR)]
View = Annotated[
    str,
    _option(
        "--view",
        "The heat map: row (that the classifier reads), received, rollout, flow, gradient, effective.",
        _DOOR,
    ),
]
LongTexts = Annotated[
    str, _option("--long-texts", "Longer than the model reads: cut or windows.", _DOOR)
]
Dtype = Annotated[
    str,
    _option("--dtype", "float32; bfloat16 or float16, which tie words in leave-one-out.", _DOOR),
]
BatchTokens = Annotated[
    int, _option("--batch-tokens", "Positions a batch may hold: bounds the memory.", _DOOR)
]
LeaveOneOut = Annotated[str, _option("--leave-one-out", "remove a word, or mask it.", _AUDIT)]
MaxPositions = Annotated[
    int, _option("--max-positions", "Sub-words of a text that --model is trained on.", _DOOR)
]
Instances = Annotated[int, _option("--instances", "Audit at most this many test texts.", _AUDIT)]
Permutations = Annotated[int, _option("--permutations", "Shuffles of each text's weights.", _AUDIT)]
Epsilon = Annotated[
    float | None,
    _option("--epsilon", "Predictions this close (TVD) are the same. [.01; pairs .05]", _AUDIT),
]
GradientPath = Annotated[
    str | None,
    _option(
        "--gradient-path", "closed (attention held) or open. [closed; transformers open]", _AUDIT
    ),
]
GradientOf = Annotated[
    str | None, _option("--gradient-of", "log-odds or probability. [log-odds]", _AUDIT)
]
GradientForm = Annotated[str, _option("--gradient-form", "times-input or norm.", _AUDIT)]
Out = Annotated[
    Path | None,
    _option(
        "--out",
        "The run folder. [runs/DATA-ENCODER-..., beside others of this name]",
        "Run",
        parser=folder,
    ),
]
RunFolder = Annotated[
    Path | None, _option("--run", "Audit a trained run instead of --data.", "Run")
]
Overwrite = Annotated[
    bool, _option("--overwrite", "Replace what other settings made in --out.", "Run")
]

# Names of options that only some roads have a use for.
OWN_MODEL = (
    "encoder", "score", "normaliser", "embedding_size", "hidden_size", "vectors", "min_df",
)  # fmt: skip
TRAINED = ("epochs", "batch_size", "learning_rate")
TRANSFORMER = ("model", "layer", "head", "view", "long_texts", "dtype", "batch_tokens", "classes")
PAPERS = ("query_column", "dataset", "rules")
READ = (*PAPERS, "text_column", "label_column", "tokenizer", "min_tokens", "max_tokens")


def given(context: typer.Context) -> list[str]:
    """The options that the user gave, by their Python names."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source and source.name != "DEFAULT"]


def refuse(names: list[str], wrong: tuple[str, ...], of: str) -> None:
    """Raises InputError where options were given that the chosen road has no use for."""
    if found := [f"--{name.replace('_', '-')}" for name in wrong if name in names]:
        one = "not an option" if len(found) == 1 else "not options"
        raise InputError(f"{', '.join(found)}: {one} of {of}; leave out")
