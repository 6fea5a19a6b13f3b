"""The `heedmap` command: one file per command, each a thin caller of the library."""

from heedmap.cli.main import main

__all__ = ["main"]
