"""How `heedmap audit` shows the audits of all labels of a model."""

from pathlib import Path
from typing import Any

import typer

from heedmap.cli.report import fails
from heedmap.errors import InputError
from heedmap.files.naming import is_there
from heedmap.terminal.commands import print_json
from heedmap.terminal.output import say, show
from heedmap.training.shards import is_divided


def gives_labels(model: str) -> bool:
    """Return whether a model gives several labels at once, each of which is audited by itself.

    Raises:
        InputError: there is no such model.
    """
    from heedmap.huggingface.configurations import find_model
    from heedmap.huggingface.picture_loading import reads_pictures

    if reads_pictures(model):
        return False
    return find_model(model).labels() is not None


def audit_all_labels(
    model: str,
    data: str,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
    fail_on: str | None,
    options: dict[str, Any],
    audit_options: dict[str, Any],
) -> None:
    """Audit every label, print the table of labels and where its page is.

    Raises:
        InputError: as `sweeps.labels.audit_labels`; a shard.
        typer.Exit: with 1, if the answer about a label is as bad as `fail_on` or worse.
    """
    if is_divided():
        raise InputError("--shard: expected the audit of one label; name it with --output")
    from heedmap.papers.kit.render import terminal
    from heedmap.sweeps.labels import audit_labels

    name = Path(data).name.split(".")[0] if is_there(data) else Path(data).name
    place = out or Path("runs") / f"{name}-{Path(model).name}-labels"
    finished = audit_labels(
        model, data, out=place, overwrite=overwrite, audit_options=audit_options, **options
    )
    rows = finished.to_rows()
    if as_json:
        print_json({"folder": str(finished.folder), "labels": rows})
    else:
        show(*terminal(finished.result), width=160)
        say(f"Result: {finished.folder / 'result.html'} (also .md, .csv, .tex)")
    bad = [row["label"] for row in rows if fails(row["answer"], fail_on)]
    if bad:
        say(f"heedmap: the answer fails for {', '.join(bad)}: --fail-on {fail_on}", error=True)
        raise typer.Exit(1)
