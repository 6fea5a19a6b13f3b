"""`heedmap explain RUN|MODEL "text"`: what one answer rests on, and what its heat map says of it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.data.file_kinds import KINDS
from heedmap.errors import InputError
from heedmap.settings.data import READING, DataSettings
from heedmap.terminal import options as opt
from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import csv_cell
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.report.explanation import Explanations

SOURCE = "A run's folder, or a Hugging Face classifier: its folder or its name on the Hub."
TEXT = "The text; - reads it from standard input. [or --data]"
TARGET = (
    "The word of the text that a token classifier is asked about, or the word that [MASK] hides."
)
FOIL = "The word that a masked language model might take for the hidden one."
OUTPUT = "The label to explain, of a model that gives several at once."
QUERY = "The question or hypothesis that a model of pairs reads the text given."
DATA = "A CSV, JSONL, Parquet or Excel file of texts (.gz too), or a folder of pictures or bags; no labels."
SUFFIXES = (*KINDS, ".txt", ".gz")
LONGEST_NAME = 256
FORMAT = "Format of the output: text for people, csv with a row per token, or json. [text; csv with --data]"


@opt.with_options(READING)
def explain_command(
    source: Annotated[str, typer.Argument(metavar="RUN|MODEL", help=SOURCE)],
    text: Annotated[str | None, typer.Argument(help=TEXT, show_default=False)] = None,
    query: Annotated[str | None, typer.Option("--query", help=QUERY)] = None,
    target: Annotated[str | None, typer.Option("--target", help=TARGET)] = None,
    foil: Annotated[str | None, typer.Option("--foil", help=FOIL)] = None,
    output: Annotated[str | None, typer.Option("--output", help=OUTPUT)] = None,
    data: Annotated[Path | None, typer.Option("--data", help=DATA)] = None,
    text_column: Annotated[
        str | None,
        typer.Option(
            "--text-column",
            help="Column of the text in --data, or several to join: title,content. [guessed]",
        ),
    ] = None,
    query_column: Annotated[
        str | None,
        typer.Option(
            "--query-column",
            help="Column of the question or hypothesis in --data, for a model of pairs.",
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id-column", help="Column of the texts' own ids in --data. [guessed]"),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            "--label-column",
            help="Column of the words' labels in --data, by which a token classifier is asked about words, or "
            "of the words that masks hide. [guessed]",
        ),
    ] = None,
    foil_column: Annotated[
        str | None,
        typer.Option(
            "--foil-column",
            help="Column of the foils in --data, for a masked language model. [guessed]",
        ),
    ] = None,
    *,
    variant: opt.Variant = None,
    device: opt.Device = None,
    given: opt.Given,
    form: Annotated[
        str | None, typer.Option("--format", help=FORMAT, **opt.one_of("text", "csv", "json"))
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain a text, picture or bag, or each of many: prediction, heat map, gradient, leave-one-out, other
    weights with the same answer, and what flips it. Needs no labels: of a run only the model is read.
    """
    if as_json and form not in (None, "json"):
        raise InputError(f"--json: expected --format json or none, got {form}; leave one out")
    form = "json" if as_json else form
    columns = {
        "text": text_column,
        "query": query_column,
        "id": id_column,
        "label": label_column,
        "foil": foil_column,
    }
    if data is None:
        data_options = [f"{name}-column" for name, column in columns.items() if column is not None]
        if data_options := [*data_options, *given.values]:
            raise InputError(
                f"--{data_options[0]}: an option of --data; name the file with --data too"
            )
        _one(source, variant, device, text, query, form, target=target, foil=foil, output=output)
        return
    if target is not None or foil is not None:
        raise InputError(
            "--data: expected no --target beside a file of texts; name the words in its column target (and "
            "foil)"
        )
    if text is not None or query is not None:
        surplus = "--query; name its column with --query-column" if text is None else "a text"
        raise InputError(f"--data: expected no text beside the file of texts, got {surplus}")
    keys, explanations = _each(source, variant, device, output, data, {**columns, **given.values})
    if form == "json":
        print_json(
            [
                {"id": key, **explanation.to_dict()}
                for key, explanation in zip(keys, explanations, strict=True)
            ]
        )
    elif form == "text":
        explanations.show()
    else:
        _print_csv(explanations, keys)


def _one(
    source: str,
    variant: str | None,
    device: str | None,
    text: str | None,
    query: str | None,
    form: str | None,
    **asked: str | None,
) -> None:
    if text is None and Path(source).suffix in SUFFIXES:
        raise InputError(
            f"{source}: expected a run or a model first, got a file of texts: "
            f"`heedmap explain RUN --data {source}`"
        )
    if text is None:
        raise InputError(
            f"{source}: expected a text too, or --data with a file of texts: "
            f'`heedmap explain {source} "A text."`'
        )
    if Path(text).suffix in SUFFIXES and len(text) < LONGEST_NAME and Path(text).is_file():
        raise InputError(
            f"{text}: expected a text, got a file; explain its texts with --data {text}"
        )
    with working("reading the model and the text"):
        from heedmap.report.explanation import Explanations
        from heedmap.runs.explain import explain

        explanation = explain(
            source,
            read(text),
            query=query and in_utf8(query),
            variant=variant,
            device=device,
            **asked,
        )
    if form == "json":
        print_json(explanation.to_dict())
    elif form == "csv":
        _print_csv(Explanations([explanation]), ["1"])
    else:
        explanation.show()


def _each(
    source: str,
    variant: str | None,
    device: str | None,
    output: str | None,
    data: Path,
    options: Mapping[str, str | None],
) -> "tuple[list[str], Explanations]":
    """Explain the texts of a file; returns their keys too."""
    with working("reading the model and the texts"):
        from heedmap.runs.explain_data import explain_data

        settings = DataSettings.of(source=str(data), **options)
        return explain_data(source, settings, output=output, variant=variant, device=device)


def _print_csv(explanations: "Explanations", keys: list[str]) -> None:
    """Print a row per token; the key of its text stands first."""
    frame = explanations.to_dataframe()
    frame["text"] = [keys[place] for place in frame["text"]]
    frame = frame.rename(columns={"text": "id"})
    for column in {"id", "answer", "unit", "token"} & {*frame.columns}:
        frame[column] = frame[column].map(csv_cell)
    frame.to_csv(sys.stdout, index=False)


def read(text: str) -> str:
    """Return a command's text, or standard input for -."""
    if text != "-":
        return in_utf8(text)
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def in_utf8(argument: str) -> str:
    """Return an argument of the command line as UTF-8, whatever the locale says."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")
