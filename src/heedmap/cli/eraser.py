"""`heedmap eraser`: a run's rationales as predictions in ERASER's layout, and the scores of such a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.errors import InputError
from heedmap.settings.base import OptionSubset
from heedmap.settings.data import DataSettings
from heedmap.terminal import options as opt
from heedmap.terminal.output import WIDE, cell, say, show
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.runs.eraser_scores import Score

COLUMNS = OptionSubset(
    DataSettings, "tokenizer", "min_tokens", "max_tokens", "train_texts", "test_texts", "classes"
)


@opt.with_options(COLUMNS)
def eraser_command(
    source: Annotated[
        Path, typer.Argument(help="An audited run to export, or a file of predictions to score.")
    ],
    *,
    ranking: Annotated[
        str | None,
        typer.Option(
            "--ranking",
            help="Ranking of a run to export: attention, gradient, leave_one_out, ... [attention]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File of the predictions. [RUN/eraser-RANKING.jsonl]", parser=opt.file
        ),
    ] = None,
    data: opt.Data = None,
    given: opt.Given,
) -> None:
    """Compare rationales with the words that people marked: export those of a run to a file of predictions in
    ERASER's layout, or score such a file against --data.
    """
    from heedmap.data.documents import documents

    if source.is_dir():
        given.allow(of="a run, which knows its data")
        if data is not None:
            raise InputError("--data: not an option of a run, which knows its data; leave it out")
        from heedmap.runs.eraser_export import export

        ranking_name = ranking or "attention"
        path = out or source / f"eraser-{ranking_name}.jsonl"
        with working("reading the texts again"):
            texts, count, notes = export(source, ranking_name, path)
        say(f"Predictions: {path} ({count} texts)")
        for note, number in notes.items():
            say(f"Texts {note}: {number}")
    else:
        if data is None:
            raise InputError(
                f"{source}: expected --data too: the corpus with the words that people marked"
            )
        if ranking is not None or out is not None:
            raise InputError("--ranking, --out: options of a run, not of a file; leave them out")
        texts, path = documents(DataSettings.of(source=data, **given.of(COLUMNS))), source
    from heedmap.data.eraser_predictions import read_predictions
    from heedmap.runs.eraser_scores import score

    predictions = read_predictions(path, texts)
    scores, missing = score(predictions, texts)
    _show(scores)
    say(
        f"{len(predictions)} of {len(texts)} texts. Agreement with people is plausibility, not faithfulness."
    )
    for reason, number in missing.items():
        say(f"Left out of the agreement: {reason}: {number}")


def _show(scores: "list[Score]") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("measure", "mean", "by chance", "at best", "n"):
        table.add_column(column, overflow="fold")
    for score in scores:
        numbers = (
            "–" if x is None else f"{x:.3f}" for x in (score.value, score.chance, score.best)
        )
        table.add_row(*map(cell, (score.name, *numbers, str(score.n))))
    show(table, width=WIDE)
