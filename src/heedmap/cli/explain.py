"""`heedmap explain RUN|MODEL "text"`: what one answer rests on, and what its heat map says of it."""

import sys
from typing import Annotated

import typer

SOURCE = "A run's folder, or a Hugging Face classifier: its folder or its name on the Hub."
QUERY = "The question or hypothesis that a model of pairs reads the text given."


def explain_command(
    source: Annotated[str, typer.Argument(metavar="RUN|MODEL", help=SOURCE)],
    text: Annotated[str, typer.Argument(help="The text; - reads it from standard input.")],
    query: Annotated[str | None, typer.Option("--query", help=QUERY)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers as JSON instead.")
    ] = False,
) -> None:
    """Explain one text: prediction, heat map, gradient, leave-one-out, other weights with the same answer, and
    what flips it. Needs no data: of a run only the model is read.
    """
    import json

    from heedmap.runs.explain import explain
    from heedmap.terminal.progress import progress

    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    with progress() as bar:
        task = bar.add_task("reading the model and the text", total=None)
        explanation = explain(
            source,
            text,
            query=query,
            announce=lambda name: bar.update(task, description=name.replace("_", " ")),
        )
    if as_json:
        typer.echo(json.dumps(explanation.to_dict(), indent=1, allow_nan=False))
    else:
        explanation.show()
