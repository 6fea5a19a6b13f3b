"""A job and an executor for the tests of executors; workers import them by name, and nothing slow."""

import os
import signal
import time
import warnings
from contextlib import suppress
from multiprocessing import get_context

from heedmap.errors import InputError
from heedmap.files.manifest import write
from heedmap.terminal.progress import at


def squared(job, folder):
    """A job that keeps its square, and what befalls it the first time."""
    path = folder / f"{job}.txt"
    if not path.exists():
        fate = folder / f"{job}.fate"
        if fate.exists() and (kind := fate.read_text()):
            fate.unlink()
            if kind == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "warns":
                warnings.warn("mind this", UserWarning, stacklevel=1)
            if kind == "slow":
                at(1, 2, "half")
                time.sleep(2)
            if kind == "input":
                raise InputError("expected this, got that")
            if kind == "disk":
                raise OSError(28, "No space left", "x")
            if kind == "wrong":
                raise ZeroDivisionError("by zero")
        write(path, str(job * job))
    return int(path.read_text())


class Processes:
    """An executor of a process per call, as SLURM has one per job: only `submit` and `result`."""

    def submit(self, function, *arguments):
        receiver, sender = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(
            target=_call, args=(sender, function, arguments), daemon=True
        )
        process.start()
        sender.close()

        class Future:
            def result(self):
                return receiver.recv()

        return Future()


def _call(sender, function, arguments):
    with suppress(BrokenPipeError):  # the driver has ended
        sender.send(function(*arguments))
