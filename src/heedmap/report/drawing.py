"""Draw with vl-convert in a process of its own: its engine ends a process that has too little memory.

    svg = draw_with("vegalite_to_svg", spec, config=CONFIG)

The engine takes a second to start, so the process stays for the next figure, and ends with the one that asks.
Run as a script this file is that process: it imports nothing of heedmap and so starts at once.
"""

import atexit
import base64
import json
import os
import subprocess
import sys
import threading
from typing import Any

_PROCESSES: dict[int, "subprocess.Popen[bytes]"] = {}  # by who asks: a fork has not its parent's
_LOCK = threading.Lock()


def draw_with(function: str, *arguments: Any, **options: Any) -> Any:
    """Return what a function of vl-convert returns, a text or bytes.

    Raises:
        InputError: the process ended: it got too little memory.
        ValueError: the function refused its arguments.
    """
    request = json.dumps([function, arguments, options]).encode() + b"\n"
    with _LOCK:
        process = _PROCESSES.get(os.getpid())
        if process is None or process.poll() is not None:
            process = _PROCESSES[os.getpid()] = _start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and says nothing
        line = process.stdout.readline()
    if not line.endswith(b"\n"):
        from heedmap.errors import InputError

        raise InputError(
            "the figures cannot be drawn: the process that draws them ended "
            f"(code {process.wait()}), as it does for want of memory; it reserves some tens of GB of "
            "addresses: raise the limit of virtual memory (ulimit -v), or draw elsewhere"
        )
    kind, content = json.loads(line)
    if kind == "error":
        raise ValueError(content)
    return base64.b64decode(content) if kind == "bytes" else content


def _start() -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the engine's native trace
    )
    atexit.register(_end, process)
    return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def _serve() -> None:
    """Answer requests, a line of JSON each, until standard input ends."""
    import vl_convert

    for line in sys.stdin.buffer:
        function, arguments, options = json.loads(line)
        try:
            content = getattr(vl_convert, function)(*arguments, **options)
        except ValueError as error:
            answer = ["error", str(error)]
        else:
            raw = isinstance(content, bytes)
            answer = ["bytes", base64.b64encode(content).decode()] if raw else ["text", content]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
