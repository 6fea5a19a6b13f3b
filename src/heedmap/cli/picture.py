"""`heedmap picture MODEL --text "..."`: one text under other attention, as a page."""

import hashlib
import re
from pathlib import Path
from typing import Annotated

import typer

from heedmap.terminal import options as opt
from heedmap.terminal.output import say


def picture_command(
    model: Annotated[
        str, typer.Argument(help="A Hugging Face classifier: its folder or its name on the Hub.")
    ],
    text: Annotated[str, typer.Option("--text", help="The text to read.")],
    layer: Annotated[
        int, typer.Option("--layer", help="Shown first, and searched; -1 is the last.")
    ] = -1,
    seed: Annotated[
        int, typer.Option("--seed", help="Of shuffles, noise and search.", min=0, max=2**63 - 1)
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page. [runs/pictures/MODEL-TEXT.html]", parser=opt.file),
    ] = None,
) -> None:
    """Draw one text's heat maps by layer and head: the model's own, uniform, shuffled and random keys, sparser
    activations, the search's. Needs no data and trains nothing.
    """
    from heedmap.errors import InputError

    if not text.strip():
        raise InputError("expected a text of one word at least, got none; give one with --text")
    from heedmap.files.storage import write_atomically
    from heedmap.huggingface.opening import open_classifier
    from heedmap.report.pictures import draw, page
    from heedmap.settings import TransformerSettings

    classifier, _ = open_classifier(TransformerSettings.of(source=model, layer=layer))
    picture = draw(classifier, text, seed)
    path = out or Path("runs") / "pictures" / f"{_name(model, text, layer, seed)}.html"
    write_atomically(path, page(picture))
    for note in picture.notes:
        say(f"Note: {note}.")
    say(f"Picture: {path}")


def _name(model: str, text: str, layer: int, seed: int) -> str:
    """Return a file name: the model's name, the start of the text, and a hash of all options."""
    start = "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:40].strip("-")
    options = "\n".join([model, str(layer), str(seed), text])
    mark = hashlib.sha256(options.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return "-".join(part for part in (Path(model).name, start, mark) if part)
