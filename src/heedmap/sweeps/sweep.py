"""Train and audit every run of a sweep; each is a job that resumes by itself.

OUT/settings.toml    the plan and the texts
OUT/sweep.json       that this is a sweep, with the notes on its texts
OUT/NAME/            a run with its report
OUT/result.*         one page of all runs
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from heedmap.data.corpus import Corpus
from heedmap.data.load import load
from heedmap.errors import InputError
from heedmap.files.locking import whole_command
from heedmap.files.manifest import write as write_listed
from heedmap.papers.kit.parts import left_out, read_settings, reserved, run_folder, sizes
from heedmap.papers.kit.render import write
from heedmap.papers.kit.result import Result
from heedmap.runs.audit import audit, open_audit
from heedmap.runs.folder import SWEEP, RunFolder
from heedmap.runs.open import open_model
from heedmap.runs.run_paths import Out
from heedmap.runs.train import train
from heedmap.settings.base import Settings
from heedmap.sweeps.plan import Plan, SweepRun, check, raw_options, read_plan
from heedmap.sweeps.result import Row, make_result, rows_of
from heedmap.terminal.progress import portion, working
from heedmap.training.jobs import run_jobs
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes


class SweepSettings(Settings):
    """What a sweep depends on: its plan, and a fingerprint of the texts of each data set."""

    version: int = 1
    plan: Plan
    fingerprints: dict[str, str]


@dataclass(frozen=True)
class Sweep:
    """A finished sweep: its folder and its result."""

    folder: Path
    result: Result


@takes_executor
def sweep(
    plan: Plan | str | Path,
    *,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    progress: bool = True,
) -> Sweep:
    """Train and audit every run of a plan, and write one page. Resumes a stopped call.

    Args:
        plan: the sweep's TOML file, or a plan that `read_plan` returns or that is made of its fields.
        out: the folder for everything.
        overwrite: replace a sweep with other settings.
        workers: how many processes; one per core by default. The numbers do not depend on it.
        progress: False to show no progress bar.

    Raises:
        InputError: no such file, a choice that there is not, texts that cannot be read, another sweep in `out`,
            or another process that writes there.
    """
    processes(workers)
    if isinstance(plan, Plan):
        check(plan)
    else:
        plan = read_plan(Path(plan))
    with working("sweep", progress):
        corpora = texts_of(plan)
        settings = SweepSettings(
            plan=plan,
            fingerprints={source: corpus.fingerprint() for source, corpus in corpora.items()},
        )
        names = tuple(map(str, plan.runs))
        with reserved(out, settings, overwrite=overwrite, files=(SWEEP, *names)) as folder:
            write_listed(folder / SWEEP, '{"sweep": 1}\n')
            rows: list[Row] = []
            run_jobs(
                plan.runs,
                partial(run_one, plan=plan, corpora=corpora, folder=folder),
                lambda run, numbers: rows.extend(numbers),
                folder=folder,
                is_finished=partial(_is_finished, folder),
                workers=workers,
            )
            notes = [
                note for corpus in corpora.values() for note in (sizes(corpus), *left_out(corpus))
            ]
            result = make_result(plan, rows, notes)
            write(folder, result)
            return Sweep(folder, result)


def texts_of(plan: Plan) -> dict[str, Corpus]:
    """Read the texts of every data set, so that errors show at once."""
    sources = dict.fromkeys(run.data for run in plan.runs)
    return {source: load(source, **plan.options_of(source)) for source in sources}


def run_one(run: SweepRun, *, plan: Plan, corpora: Mapping[str, Corpus], folder: Path) -> list[Row]:
    """Train and audit one run, or read what an earlier call has finished; return its findings."""
    out = run_folder(folder, str(run))
    with whole_command():
        with portion(0.5):
            if run.model is None:
                options: dict[str, Any] = {
                    "encoder": run.encoder, "score": run.score, "normaliser": run.normaliser,
                    "seed": run.seed, **plan.train,
                }  # fmt: skip
                opened = train(corpora[run.data], out=out, **options)
            else:
                text_options = raw_options(plan.options_of(run.data))
                opened = open_model(run.model, run.data, out=out, view=run.view, **text_options)
        with portion(0.5):
            finished = audit(opened, seed=run.seed, **plan.audit)
    return rows_of(run, finished)


def _is_finished(folder: Path, run: SweepRun) -> bool:
    return RunFolder(folder / str(run)).report.exists()


def read_sweep(folder: Path) -> Result | None:
    """Return the result of the sweep in a folder; None where there is none, or it is not finished.

    Raises:
        InputError: a run is damaged.
    """
    if not (folder / SWEEP).exists():
        return None
    settings = read_settings(folder, SweepSettings)
    runs = settings.plan.runs
    if missing := [run for run in runs if not _is_finished(folder, run)]:
        raise InputError(
            f"{folder}: expected a finished sweep, {len(missing)} of {len(runs)} runs are not; run it again"
        )
    rows = [row for run in runs for row in rows_of(run, open_audit(folder / str(run)))]
    return make_result(settings.plan, rows, [])
