"""`heedmap check MODEL` and `heedmap support`: can a model's attention be audited?"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.errors import InputError
from heedmap.terminal import options as opt
from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import WIDE, cell, say, show
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.huggingface.verification import Check, VerificationResult


def check_command(
    model: Annotated[
        str, typer.Argument(help="A Hugging Face classifier: its folder or its name on the Hub.")
    ],
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            help="Number format of the weights. [float32]",
            show_default=False,
            **opt.one_of("float32", "bfloat16", "float16"),
        ),
    ] = "float32",
    device: opt.Device = None,
    as_json: Json = False,
) -> None:
    """Verify a classifier: is its attention read and replaced exactly?"""
    with working("verifying the model"):
        from heedmap.runs.check import verified

        result = verified(model, dtype, device)
    if as_json:
        print_json({"model": model, **asdict(result), "passes": result.refusal is None})
    else:
        _show(result)
    if result.refusal is not None:
        raise InputError(result.refusal)
    if not as_json:
        say(
            f"Verdict: its attention is read and replaced exactly; `heedmap audit --model {model} --data ...` "
            "puts it on trial."
        )


def support_command(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the page here. [the terminal]", parser=opt.file),
    ] = None,
) -> None:
    """Measure which architectures can be audited, on tiny models (a minute or two)."""
    from heedmap.files.storage import write_atomically

    with working("support"):
        from heedmap.huggingface.support import support_table

        page = support_table()
    if out is None:
        typer.echo(page, nl=False)
    else:
        write_atomically(out, page)
        say(f"Support: {out}")


def _show(result: "VerificationResult") -> None:
    from rich.table import Table

    access = {
        "interface": "by transformers' attention interface",
        "softmax": "by its softmax",
        "reading": "by what it reports, reading only",
        "refused": "not entered",
    }[result.kind]
    say(f"{result.architecture}: {result.size} (layers × heads), {access}")
    if not result.checks:
        return
    table = Table(box=None, pad_edge=False)
    for column in ("check", "result", "measured", "what it says"):
        table.add_column(column, overflow="fold")
    for check in result.checks:
        measured = "–" if check.value is None else f"{check.value:.2g}"
        table.add_row(*map(cell, (check.name, _result(check), measured, check.explanation)))
    show(table, width=WIDE)


def _result(check: "Check") -> str:
    if check.part == "report":
        return "noted"
    if not check.passed:
        return "FAILS"
    return "ok" if not check.explanation.startswith("not tried") else "not tried"
