"""Count the file operations of a process, and kill it at the one that was chosen.

An operation is what the interpreter reports of files under a folder (opened for writing, renamed, removed,
made), every write (half of it is done), and every fsync.
"""

import builtins
import io
import os
import signal
import sys
from pathlib import Path

CHANGES = {
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link", "os.symlink",
}  # fmt: skip


class Counter:
    """Counts operations, and kills the process at the one that was chosen."""

    def __init__(self, root, fatal=None, at_each=lambda: None):
        self.root, self.count, self.fatal, self.at_each = str(root), 0, fatal, at_each

    def step(self):
        self.count += 1
        self.at_each()
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event, args):
        if event == "open":
            path, _, flags = args
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and self.here(path):
                self.step()
        elif event in CHANGES and (self.here(args[0]) or (len(args) > 1 and args[-1] != -1)):
            self.step()

    def here(self, path):
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(self.root)

    def install(self):
        sys.addaudithook(self.audit)
        fsync = os.fsync
        os.fsync = lambda handle: (self.step(), fsync(handle))[1]
        plain = io.open

        def opened(file, mode="r", *args, **kwargs):
            made = plain(file, mode, *args, **kwargs)
            if set(mode) & set("wax+") and self.here(file):
                write = made.write

                def halfway(data):
                    half = len(data) // 2
                    write(data[:half])
                    made.flush()
                    self.step()
                    write(data[half:])
                    return len(data)

                try:
                    made.write = halfway
                except AttributeError:  # a buffered file takes no attribute
                    return Halfway(made, self)
            return made

        io.open = builtins.open = opened


class Halfway:
    """A binary file, each write of which stops halfway to be counted."""

    def __init__(self, file, counter):
        self.__dict__ |= {"file": file, "counter": counter}

    def write(self, data):
        half = len(data) // 2
        self.file.write(data[:half])
        self.file.flush()
        self.counter.step()
        self.file.write(data[half:])
        return len(data)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.file.close()


def tree(root):
    """What is in a folder: folders, and files by their content."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else "folder"
        for path in Path(root).rglob("*")
    }
