"""What can be audited, measured: the handshake with a tiny model of every architecture in the zoo."""

from collections.abc import Callable
from importlib.metadata import version

import torch

from heedmap.errors import InputError
from heedmap.huggingface.handshake import Handshake, handshake_on
from heedmap.huggingface.zoo import ZOO, Architecture

_INTRODUCTION = """\
# Supported architectures

Measured by `heedmap support` with transformers {transformers} and torch {torch}: each row is a tiny model with
random weights that went through the same handshake as `heedmap check MODEL` runs on yours. An architecture
that is not here may work as well: the handshake tells.

* **Entered** by transformers' attention *interface* (queries, keys and values are known too), by its *softmax*
  where the model file has attention of its own, or *refused*.
* **Reading** is exact when entering leaves the answer as eager attention gives it, the weights are those the
  model reports of itself, and padding gets none.
* **Replacing** is exact when the same weights give the same answer, other weights another, and every layer's
  weights have a gradient; when the same embeddings give the same answer and every text's have a gradient.
* **Layers** is the attention layers reached × their heads, in the tiny model: 2 layers, or 2 + 2, with
  cross-attention 6.
* **Off eager** is the largest difference between the answer of the model as entered and with its own eager
  attention.

| architecture | kind | entered | reading | replacing | layers | off eager | handshake | note |
|---|---|---|---|---|---|---|---|---|
"""


def support_table(announce: Callable[[str, int, int], None] | None = None) -> str:
    """The page in Markdown, the same every time. `announce` is told name, number and count of each row.

    A model that stops in the middle of a pass is a refused row, not an error.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # for these sizes the fastest, and sums come out the same on every machine
    try:
        return _page(announce)
    finally:
        torch.set_num_threads(threads)


def _page(announce: Callable[[str, int, int], None] | None) -> str:
    versions = {name: version(name).split("+")[0] for name in ("transformers", "torch")}
    lines = []
    for number, row in enumerate(ZOO):
        if announce is not None:
            announce(row.name, number, len(ZOO))
        lines.append(_line(row, try_out(row)))
    passing = sum("| passes |" in line for line in lines)
    return (
        _INTRODUCTION.format(**versions)
        + "\n".join(lines)
        + f"\n\n{passing} of {len(lines)} pass.\n"
    )


def try_out(row: Architecture) -> Handshake:
    """The handshake with one architecture of the zoo."""
    model = row.build()
    try:
        return handshake_on(model, row.tensors())
    except InputError as error:
        return Handshake(type(model).__name__, "refused", (), (), (), str(error))


def _line(row: Architecture, found: Handshake) -> str:
    off = found.value("entered as eager")
    cells = (
        row.name,
        row.family,
        found.kind,
        _exact(found.reads),
        _exact(found.edits),
        found.size if found.calls else "–",
        "–" if off is None else f"{off:.0e}" if off else "0",
        "passes" if found.ok else "fails",
        "; ".join(filter(None, (row.note, *_notes(row, found)))),
    )
    return f"| {' | '.join(cells)} |"


def _exact(yes: bool) -> str:
    return "exact" if yes else "no"


def _notes(row: Architecture, found: Handshake) -> list[str]:
    if found.kind == "refused":
        return ["no weights of tokens over tokens to be had"]
    if found.kind == "reading":
        return ["reports weights, but computes its output elsewhere"]
    failed = [check.name for check in found.checks if not check.passed]
    if failed == ["padded as unpadded"]:
        return ["its answer to a text depends on the padding beside it"]
    if failed:
        return [f"fails at: {', '.join(failed)}"]
    notes = []
    if row.model is not None:
        notes.append(f"{row.model}: transformers has no text classifier of it")
    causal = int(found.value("causal") or 0)
    if causal:
        notes.append("causal" if causal == len(found.calls) else f"causal in {causal} layers")
    if (found.value("rows sum to one") or 0.0) > 0.01:
        notes.append("rows sum to less than one (a sink)")
    if found.value("padded as unpadded") is None:
        notes.append("tried without padding")
    elif not found.other_side:
        notes.append(f"padded on the {row.pads} only")
    return notes
