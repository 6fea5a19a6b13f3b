"""Cells for the tests of sweeps; workers import them by name."""

import errno
import os
import signal
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

from conftest import small_corpus, watched

from heedmap.errors import InputError
from heedmap.files.storage import write_atomically
from heedmap.runs.train import train
from heedmap.terminal.progress import at
from heedmap.training.sweep import TELL_EVERY

SMALL = {
    "embedding_size": 12,
    "hidden_size": 16,
    "min_df": 1,
    "learning_rate": 1e-4,
    "encoder": "average",
}


def trained(out, epochs, seed):
    """A real training, kept in a run folder; the threads it ran with."""
    kill = out / f"kill-{seed}"

    def kill_it(done, text):
        if "epoch 2 " in text and kill.exists():
            kill.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    with watched(kill_it) if kill.exists() else nullcontext():
        run = train(small_corpus(), seed=seed, epochs=epochs, out=out / f"seed-{seed}", **SMALL)
    return seed, run.training.threads


def seen(cell):
    """The worker's settings."""
    warnings.warn("only once", UserWarning, stacklevel=1)
    return cell, os.environ["OMP_NUM_THREADS"], os.getpid(), os.getppid()


def halfway(cell):
    """A cell that says once that half of it is done."""
    time.sleep(2 * TELL_EVERY)
    at(1, 2, "half")


def unpicklable(cell):
    """A result that no other process can have."""
    return lambda: cell


def dead(cell):
    """A worker that ends by itself."""
    os._exit(3)


def slow_or_wrong(folder, cell):
    """Cell 0 fails once cell 1 has begun; cell 1 writes that it began, and lasts."""
    begun = Path(folder) / "begun"
    if cell == 1:
        write_atomically(begun, str(os.getpid()))
        time.sleep(600)
    while not begun.exists():
        time.sleep(0.01)
    if cell == "bug":
        raise ZeroDivisionError("a bug")
    if cell == "full":
        raise OSError(errno.ENOSPC, "No space left on device", "there")
    raise InputError("expected this, got that; do so")


if __name__ == "__main__":  # a sweep to interrupt
    import sys
    from functools import partial

    import sweep_cells

    from heedmap.training.sweep import sweep

    try:
        sweep([1], partial(sweep_cells.slow_or_wrong, sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
