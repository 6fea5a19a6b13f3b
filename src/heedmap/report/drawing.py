"""Draw with vl-convert in a process of its own: its engine ends a process that has too little memory.

    with Drawing() as drawing:
        svg = drawing.ask("vegalite_to_svg", spec, config=CONFIG)

Run as a script this file is that process: it imports nothing of heedmap and so starts at once.
"""

import base64
import json
import subprocess
import sys
from typing import Any


class Drawing:
    """The process that draws, within a `with` block; one is enough for many figures."""

    def __enter__(self) -> "Drawing":
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the engine's native trace
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, function: str, *arguments: Any, **options: Any) -> Any:
        """Return what a function of vl-convert returns, a text or bytes.

        Raises:
            InputError: the process ended: it got too little memory.
            ValueError: the function refused its arguments.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([function, arguments, options]).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and says nothing
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            from heedmap.errors import InputError

            raise InputError(
                "the figures cannot be drawn: the process that draws them ended "
                f"(code {self._process.wait()}), as it does for want of memory; it reserves some tens of GB of "
                "addresses: raise the limit of virtual memory (ulimit -v), or draw elsewhere"
            )
        kind, content = json.loads(line)
        if kind == "error":
            raise ValueError(content)
        return base64.b64decode(content) if kind == "bytes" else content


def _serve() -> None:
    """Answer requests, a line of JSON each, until standard input ends."""
    import vl_convert

    for line in sys.stdin.buffer:
        function, arguments, options = json.loads(line)
        try:
            made = getattr(vl_convert, function)(*arguments, **options)
        except ValueError as error:
            answer = ["error", str(error)]
        else:
            raw = isinstance(made, bytes)
            answer = ["bytes", base64.b64encode(made).decode()] if raw else ["text", made]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
