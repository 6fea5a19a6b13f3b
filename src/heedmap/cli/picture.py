"""`heedmap picture RUN|MODEL "text"`: one text as a page."""

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.cli.explain import QUERY, SOURCE, TEXT, read
from heedmap.terminal import options as opt
from heedmap.terminal.output import say

if TYPE_CHECKING:
    from heedmap.huggingface.transformer_classifier import TransformerClassifier


def picture_command(
    source: Annotated[str, typer.Argument(metavar="RUN|MODEL", help=SOURCE)],
    text: Annotated[str | None, typer.Argument(help=TEXT)] = None,
    text_option: Annotated[
        str | None, typer.Option("--text", help="The text, given as an option.")
    ] = None,
    query: Annotated[str | None, typer.Option("--query", help=QUERY)] = None,
    variant: opt.Variant = None,
    device: opt.Device = None,
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            help="Layer that is shown first and searched; -1 is the last. [the run's, or -1]",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", help="Seed of shuffles, noise and search. [0]", min=0, max=2**63 - 1
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File of the page. [runs/pictures/MODEL-TEXT.html]", parser=opt.file
        ),
    ] = None,
) -> None:
    """Draw one text's heat maps by layer and head: the model's own, uniform, shuffled and random keys, sparser
    activations, the search's. Of a run of our own models, which have one map, draw what `heedmap explain` says.
    Needs no data and trains nothing.
    """
    from heedmap.errors import InputError, running_model

    if text is not None and text_option is not None:
        raise InputError("expected one text, got two; give it after the model or with --text")
    text = read(text or text_option or "")
    if not text.strip():
        raise InputError("expected a text of one word at least, got none; give one after the model")
    from heedmap.files.storage import write_atomically
    from heedmap.huggingface.tasks import Task
    from heedmap.huggingface.transformer_classifier import TransformerClassifier
    from heedmap.report.pictures import draw, page
    from heedmap.runs.explain import opened
    from heedmap.runs.explained import explained

    place, settings, model = opened(source, variant, device)
    path = (
        out
        or Path("runs") / "pictures" / f"{_name(str(place), text, query, layer, seed or 0)}.html"
    )
    if isinstance(model, TransformerClassifier) and model.nouns is None:
        if query is not None:
            raise InputError(
                "--query: a picture is of a single text; `heedmap explain` shows the map of a pair"
            )
        if model.task.is_asked_of_words:
            foil = " --foil WORD" if model.task is Task.MASKS else ""
            raise InputError(
                f"{source}: expected a model that answers about a text, got one that is asked about a word; "
                f'`heedmap explain {source} "TEXT" --target WORD{foil}` shows its map'
            )
        if "classes" not in model.capabilities:
            raise InputError(
                f"{source}: expected a model that decides between classes, got one that gives a number; "
                "`heedmap explain` shows its map of a text"
            )
        with running_model(model, "picture"):
            picture = draw(_at(model, layer), text, seed or 0)
        write_atomically(path, page(picture))
        notes = picture.notes
    else:
        if layer is not None or seed is not None:
            raise InputError(
                "--layer, --seed: options of a transformer of texts, whose layers are drawn; leave them out"
            )
        explanation = explained(place, settings, model, text, query)
        explanation.save(path)
        notes = explanation.notes
    for note in notes:
        say(f"Note: {note}.")
    say(f"Picture: {path}")


def _at(model: "TransformerClassifier", layer: int | None) -> "TransformerClassifier":
    """Return the same classifier with another layer's weights on trial: all heads, the row that is read."""
    from heedmap.huggingface.model_adapter import detach
    from heedmap.huggingface.transformer_classifier import TransformerClassifier
    from heedmap.settings.models import TransformerSettings

    layer_index = model.settings.layer if layer is None else layer
    settings = TransformerSettings.of(source=model.settings.source, layer=layer_index)
    detach(model.model)
    return TransformerClassifier(model.model, model.tokenizer, settings, model.classes)


def _name(source: str, text: str, query: str | None, layer: int | None, seed: int) -> str:
    """Return a file name: the model's name, the start of the text, and a hash of all options."""
    start = "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:40].strip("-")
    options = "\n".join([source, str(layer), str(seed), query or "", text])
    mark = hashlib.sha256(options.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return "-".join(part for part in (Path(source).name, start, mark) if part)
