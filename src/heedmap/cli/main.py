"""The `heedmap` command: every command reads its options and calls the library.

Slow imports are inside the functions, so that `heedmap --help` answers at once.
"""

import errno
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from heedmap.cli.audit import AuditCommand, audit_command
from heedmap.cli.calibrate import calibrate_command
from heedmap.cli.card import card_command
from heedmap.cli.check import check_command, support_command
from heedmap.cli.compare import compare_command
from heedmap.cli.debate import debate_command
from heedmap.cli.eraser import eraser_command
from heedmap.cli.explain import explain_command
from heedmap.cli.export import export_command
from heedmap.cli.figures import figures_command
from heedmap.cli.listing import list_command
from heedmap.cli.picture import picture_command
from heedmap.cli.report import report_command
from heedmap.cli.reproduce import app as reproduce_app
from heedmap.cli.retrain import RetrainCommand, retrain_command
from heedmap.cli.shards import SHARD, merge_command, with_engines
from heedmap.cli.sweep import sweep_command
from heedmap.cli.train import train_command
from heedmap.errors import InputError, expected
from heedmap.files.locking import whole_command
from heedmap.files.naming import holds_model
from heedmap.terminal.commands import HELP, add_command, version
from heedmap.terminal.displays import lines_on_stderr
from heedmap.terminal.output import lenient, say

app = typer.Typer(
    help="Should you heed the heat map? Puts a model's attention weights on trial.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
INTERRUPTED, TERMINATED = 130, 143
# Else oneDNN, and what calls it in PyTorch, each keep what was made for the last 1024 shapes of input:
# hundreds of megabytes where texts have many lengths, and no time is gained.
CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32", "LRU_CACHE_CAPACITY": "256"}
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
REMEDY = "what was to be written to files is there; give the command somewhere to print"
NO_OUTPUT = f"standard output is closed; {REMEDY}"
NO_MEMORY = "failed to map segment|cannot allocate memory|Cannot allocate memory"

add_command(app, "audit", with_engines(audit_command, "out", "run", added=[SHARD]), cls=AuditCommand, examples=(
    "heedmap audit --data reviews.csv",
    "heedmap audit --run runs/mine",
    "heedmap audit --model my-classifier --data reviews.csv --view rollout",
    "heedmap audit --data reviews.csv --out runs/mine --shard 1/4",
    "heedmap audit --run runs/mine --other-seed runs/seed1 --other-seed runs/seed2",
))  # fmt: skip
add_command(app, "train", train_command, examples=(
    "heedmap train --data reviews.csv --encoder cnn --score dot --out runs/mine",
    "heedmap train --data reviews.csv --model my-classifier --out runs/tuned",
))  # fmt: skip
add_command(app, "retrain", with_engines(retrain_command, "run"), cls=RetrainCommand, examples=(
    "heedmap retrain --run runs/mine",
    "heedmap retrain deception --run runs/mine --forbidden good,bad",
))  # fmt: skip
add_command(app, "report", report_command, examples=(
    "heedmap report runs/mine", "heedmap report runs/mine --without-texts",
))  # fmt: skip
add_command(app, "card", card_command, examples=(
    "heedmap card runs/mine --format png", "heedmap card runs/mine --out paper/card.tex --format tex",
))  # fmt: skip
add_command(app, "export", export_command, examples=(
    "heedmap export runs/mine --format xlsx",
    "heedmap export runs/mine --out maps --without-texts",
    "heedmap export runs/mine --out findings.csv",
))  # fmt: skip
add_command(app, "list", list_command, examples=("heedmap list", "heedmap list --json"), memory=0.7)
add_command(app, "compare", compare_command, examples=(
    "heedmap compare runs/lstm runs/cnn", "heedmap compare runs/seed0 runs/seed1 --out seeds.html",
))  # fmt: skip
add_command(app, "calibrate", with_engines(calibrate_command), examples=(
    "heedmap calibrate", "heedmap calibrate --data reviews.csv",
))  # fmt: skip
add_command(app, "check", check_command, examples=("heedmap check my-classifier",))
add_command(app, "support", support_command, examples=("heedmap support --out support.md",))
add_command(app, "explain", explain_command, examples=(
    'heedmap explain runs/mine "A dull plot, and yet I laughed."',
    'heedmap explain my-classifier "A dull plot, and yet I laughed." --json',
    "heedmap explain runs/mine --data reviews.csv --format csv",
))  # fmt: skip
add_command(app, "picture", picture_command, examples=(
    'heedmap picture my-classifier "A dull plot, and yet I laughed."',
))  # fmt: skip
add_command(app, "figures", figures_command, examples=(
    "heedmap figures runs/mine --list", "heedmap figures runs/mine --format pdf,png",
))  # fmt: skip
add_command(app, "eraser", eraser_command, examples=(
    "heedmap eraser runs/movies --ranking attention --out predictions.jsonl",
    "heedmap eraser predictions.jsonl --data movies",
))  # fmt: skip
add_command(app, "debate", with_engines(debate_command), examples=(
    "heedmap debate --data reviews.csv", "heedmap debate --data reviews.csv --parts jain-wallace,pruthi",
))  # fmt: skip
add_command(app, "sweep", with_engines(sweep_command), examples=(
    "heedmap sweep sweep.toml --dry-run",
    "heedmap sweep sweep.toml --out runs/grid",
))  # fmt: skip
add_command(app, "merge", merge_command, examples=(
    "heedmap merge runs/mine",
))  # fmt: skip
app.add_typer(reproduce_app, name="reproduce")


def main() -> None:
    """Run a command; bad input or no place to print is one line and exit code 2, Ctrl-C is 130, SIGTERM 143.

    `heedmap audit --fail-on` exits with 1 after its card.
    """
    with _process_settings(), lenient(), lines_on_stderr(), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: say(f"heedmap: note: {message}", error=True)
        if sys.stdout is None:  # `heedmap list >&-`
            _stop(NO_OUTPUT, 2)
        _run()


@contextmanager
def _process_settings() -> Iterator[None]:
    """Set for a command what belongs to its whole process, and restore it for whoever called `main`."""
    unset_caches = {name: size for name, size in CACHES.items() if name not in os.environ}
    os.environ.update(unset_caches)
    is_main = threading.current_thread() is threading.main_thread()  # no other may set a handler
    # Batch systems send SIGTERM before they kill. The default ends without a word, and cleans up nothing.
    handler = signal.signal(signal.SIGTERM, _terminate) if is_main else None
    try:
        yield
    finally:
        if handler is not None:  # nor one that was set outside Python
            signal.signal(signal.SIGTERM, handler)
        for name in unset_caches:
            os.environ.pop(name, None)


def _terminate(*_: object) -> None:
    sys.exit(TERMINATED)


def _run() -> None:
    try:
        with whole_command():
            status = app(prog_name="heedmap", standalone_mode=False)
            sys.stdout.flush()
        _end(status)
    except InputError as error:
        _stop(str(error), 2)
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # so end typer and rich at a closed pipe
            _output_lost(NO_OUTPUT)
        if error.code == TERMINATED:
            _stop("terminated; run the same command again to resume", TERMINATED)
        raise
    except BrokenPipeError:
        _output_lost(NO_OUTPUT)
    except Exception as error:
        if _was_interrupted(error):
            _interrupted()
        if type(error).__module__.startswith(("click", "typer")):
            _usage(error)
        if os.environ.get("HEEDMAP_TRACEBACK"):
            raise
        if _lacks_memory(error):
            _stop(
                "there is too little memory, or its limit is too low (ulimit -v): heedmap needs some GB; give "
                "it more", 2,
            )  # fmt: skip
        if isinstance(error, OSError) and error.strerror:  # disk full, no permission, invalid name
            _not_written(error)
        first_line = (str(error).splitlines() or [""])[0]
        _stop(
            f"internal error ({type(error).__name__}: {first_line}); "
            "HEEDMAP_TRACEBACK=1 shows where; please report it", 1,
        )  # fmt: skip


def _end(status: int | None) -> None:
    """Exit as typer says: it returns a status for Ctrl-C, and that of typer.Exit."""
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    if status:
        sys.exit(status)


def _lacks_memory(error: Exception) -> bool:
    is_import = isinstance(error, ImportError)
    return isinstance(error, MemoryError) or (
        is_import and re.search(NO_MEMORY, str(error)) is not None
    )


def _not_written(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
        _output_lost(NO_OUTPUT)
    if error.filename is None and error.errno in FULL:
        _output_lost(f"standard output cannot be written ({error.strerror}); {REMEDY}")
    place = f"{error.filename}: " if error.filename else ""
    _stop(f"{place}{error.strerror}; choose another place, or mend this one", 2)


def _output_lost(text: str) -> None:
    """Stop where nobody reads the output any more, as of `heedmap list | head -1`, or it has no room."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python's last flush complains
    _stop(text, 2)


def _interrupted() -> None:
    _stop("interrupted; run the same command again to resume", INTERRUPTED)


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether an error was caused by Ctrl-C: some libraries wrap one during their import."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
            return True
        error = error.__cause__ or error.__context__
    return False


def _usage(error: Any) -> None:
    if type(error).__name__ == "NoArgsIsHelpError":
        try:
            typer.echo(error.format_message())
        except OSError as lost:
            _not_written(lost)
        sys.exit(0)
    context = getattr(error, "ctx", None)  # none for an unknown command
    command = context.command_path if context else "heedmap"
    if isinstance(error.__cause__, ValidationError):
        said, value = expected(error.__cause__)
        error.message = f"{said}, got {value!r}"
    said = error.format_message().rstrip(".")
    if (extra := re.search(r"unexpected extra arguments?(?:\(s\))? \((.+)\)$", said)) and context:
        argument = extra[1] if Path(extra[1]).exists() else extra[1].split()[0]
        said += _other_option(context, argument)
    like_text = any(re.match(r"-+\d|-[^=]* |-[^\W\d_]{2}", argument) for argument in sys.argv[1:])
    if like_text and context and context.info_name in ("explain", "picture"):
        said += "; put -- before a text that begins with a minus"
    _stop(f"{said}{' S' if said.endswith('?') else '; s'}ee `{command} --help`", 2)


def _other_option(context: Any, argument: str) -> str:
    """Return what to say of an argument that belongs to an option of the command: --run, --model or --data."""
    options = {name for parameter in context.command.params for name in parameter.opts}
    path = Path(argument)
    kinds = {
        "--run": (path / "settings.toml").exists(),
        "--model": holds_model(path),
        "--data": path.exists() or path.suffix != "",
    }
    fitting = next((name for name, fits in kinds.items() if fits and name in options), None)
    return f"; did you mean {fitting} {argument}?" if fitting else ""


def _stop(text: str, code: int) -> None:
    say(f"heedmap: {text}", error=True)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", help="Print the version.", callback=version, is_eager=True),
    ] = False,
) -> None: ...
