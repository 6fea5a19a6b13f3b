"""`heedmap explain RUN|MODEL "text"`: what one answer rests on, and what its heat map says of it."""

import sys
from typing import Annotated

import typer

from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.progress import working

SOURCE = "A run's folder, or a Hugging Face classifier: its folder or its name on the Hub."
TEXT = "The text; - reads it from standard input."
QUERY = "The question or hypothesis that a model of pairs reads the text given."


def explain_command(
    source: Annotated[str, typer.Argument(metavar="RUN|MODEL", help=SOURCE)],
    text: Annotated[str, typer.Argument(help=TEXT)],
    query: Annotated[str | None, typer.Option("--query", help=QUERY)] = None,
    as_json: Json = False,
) -> None:
    """Explain one text: prediction, heat map, gradient, leave-one-out, other weights with the same answer, and
    what flips it. Needs no data: of a run only the model is read.
    """
    from heedmap.runs.explain import explain

    with working("reading the model and the text"):
        explanation = explain(source, read(text), query=query)
    if as_json:
        print_json(explanation.to_dict())
    else:
        explanation.show()


def read(text: str) -> str:
    """Return a command's text, or standard input for -."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if text == "-" else text
