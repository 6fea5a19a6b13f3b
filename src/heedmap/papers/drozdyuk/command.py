"""The options of `heedmap reproduce drozdyuk`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.papers.kit.command import Overwrite, TestTexts, TrainTexts, Workers, show
from heedmap.runs.run_paths import DefaultPlace
from heedmap.terminal import options as opt
from heedmap.terminal.progress import working

NEEDS = """Drozdyuk et al. trained on a data set that they do not name (two classes, IMDB-like). Give one:
  heedmap reproduce drozdyuk sst  --data PATH   a folder with train, dev and test files, such as SST
  heedmap reproduce drozdyuk imdb --data PATH   such as IMDB; --train-texts and --test-texts draw a sample
  heedmap reproduce drozdyuk --data reviews     the embedded corpus, to try it out
It needs a text and a label column, a train split, and time: about 10 minutes per seed and activation on SST."""


def command(
    name: Annotated[
        str | None, typer.Argument(help="What to call the data: sst, imdb, ...")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="A file, a folder, a Hub name, or reviews.")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="The text's column. [guessed]")] = None,
    label_column: Annotated[str | None, typer.Option(help="The label's column. [guessed]")] = None,
    tokenizer: Annotated[str, typer.Option(help="words or spaces.")] = "words",
    max_tokens: Annotated[int, typer.Option(help="Cut longer texts.")] = 254,
    activations: Annotated[
        str, typer.Option(help="Of softmax, entmax15, sparsemax; with commas between them.")
    ] = "softmax,entmax15,sparsemax",
    seeds: Annotated[int, typer.Option(help="How many: 0, 1, ...")] = 3,
    train_texts: TrainTexts = None,
    test_texts: TestTexts = None,
    model: Annotated[
        str | None, typer.Option(help="A trained classifier in place of the small transformer.")
    ] = None,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Adversaries of single layers too.")
    ] = False,
    pooling: Annotated[str, typer.Option(help="mean (over tokens) or first (the mark).")] = "mean",
    epochs: Annotated[int, typer.Option(help="At most, of the transformer.")] = 20,
    learning_rate: Annotated[float, typer.Option(help="Of the transformer.")] = 1e-4,
    batch_size: Annotated[int, typer.Option(help="Texts a step.")] = 64,
    adversary_epochs: Annotated[int, typer.Option(help="Of each adversary.")] = 5,
    alpha: Annotated[
        float, typer.Option(help="Of the adversarial loss: 1 keeps accuracy only.")
    ] = 0.5,
    out: Annotated[
        Path | None, typer.Option(help="[runs/drozdyuk-NAME]", parser=opt.folder)
    ] = None,
    overwrite: Overwrite = False,
    workers: Workers = None,
) -> None:
    """Is sparse attention a better explanation? Its Table 1 with seeds, distances and controls."""
    if data is None:
        typer.echo(NEEDS)
        if name is not None:
            raise InputError(f"{name}: expected --data, the place where {name} is")
        return
    options: dict[str, Any] = {
        "activations": tuple(opt.names(activations)),
        "seeds": seeds, "train_texts": train_texts, "test_texts": test_texts, "model": model,
        "per_layer": per_layer, "pooling": pooling, "epochs": epochs, "learning_rate": learning_rate,
        "batch_size": batch_size, "adversary_epochs": adversary_epochs, "alpha": alpha,
    }  # fmt: skip
    from heedmap.data.load import load
    from heedmap.papers.drozdyuk.paper import PAPER, reproduce

    with working("drozdyuk"):
        corpus = load(
            data, text=text_column, label=label_column, tokenizer=tokenizer, max_tokens=max_tokens
        )
        parts = ["drozdyuk", name or corpus.name, *([Path(model).name] if model else [])]
        found = reproduce(
            corpus,
            out=out or DefaultPlace(Path("runs") / "-".join(parts)),
            overwrite=overwrite,
            workers=workers,
            **options,
        )
    show(PAPER.result(found), found.folder)
