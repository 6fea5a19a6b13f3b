"""Measure which architectures can be audited: verify a tiny model of each in the zoo."""

from importlib.metadata import version

import torch

from heedmap.errors import InputError
from heedmap.huggingface.verification import VerificationResult, verify_on
from heedmap.huggingface.zoo import ZOO, Architecture
from heedmap.terminal.progress import doing, track

_INTRODUCTION = """\
# Supported architectures

Measured by `heedmap support` with transformers {transformers} and torch {torch}: each row is a tiny model with
random weights that went through the same verification as `heedmap check MODEL` runs on yours. An architecture
that is not here may work as well: the verification tells.

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

| architecture | kind | entered | reading | replacing | layers | off eager | verification | note |
|---|---|---|---|---|---|---|---|---|
"""


def support_table() -> str:
    """Return the page in Markdown, always the same.

    A model that fails in the middle of a pass is a refused row, not an error.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the fastest for these sizes, and sums are the same on every machine
    try:
        return _page()
    finally:
        torch.set_num_threads(threads)


def _page() -> str:
    versions = {name: version(name).split("+")[0] for name in ("transformers", "torch")}
    lines = []
    for row in track(ZOO):
        doing(row.name)
        lines.append(_line(row, try_out(row)))
    passing = sum("| passes |" in line for line in lines)
    return (
        _INTRODUCTION.format(**versions)
        + "\n".join(lines)
        + f"\n\n{passing} of {len(lines)} pass.\n"
    )


def try_out(row: Architecture) -> VerificationResult:
    """Verify one architecture of the zoo."""
    model = row.build()
    try:
        return verify_on(model, row.tensors())
    except InputError as error:
        return VerificationResult(type(model).__name__, "refused", (), (), (), str(error))


def _line(row: Architecture, result: VerificationResult) -> str:
    off = result.value("entered as eager")
    cells = (
        row.name,
        row.family,
        result.kind,
        _exact(result.reads),
        _exact(result.edits),
        result.size if result.calls else "–",
        "–" if off is None else f"{off:.0e}" if off else "0",
        "passes" if result.ok else "fails",
        "; ".join(filter(None, (row.note, *_notes(row, result)))),
    )
    return f"| {' | '.join(cells)} |"


def _exact(yes: bool) -> str:
    return "exact" if yes else "no"


def _notes(row: Architecture, result: VerificationResult) -> list[str]:
    if result.kind == "refused":
        return ["no weights of tokens over tokens to be had"]
    if result.kind == "reading":
        return ["reports weights, but computes its output elsewhere"]
    failed = [check.name for check in result.checks if not check.passed]
    if failed == ["padded as unpadded"]:
        return ["its answer to a text depends on the padding beside it"]
    if failed:
        return [f"fails at: {', '.join(failed)}"]
    notes = []
    if row.model is not None:
        notes.append(f"{row.model}: transformers has no text classifier of it")
    causal = int(result.value("causal") or 0)
    if causal:
        notes.append("causal" if causal == len(result.calls) else f"causal in {causal} layers")
    if (result.value("rows sum to one") or 0.0) > 0.01:
        notes.append("rows sum to less than one (a sink)")
    if result.value("padded as unpadded") is None:
        notes.append("tried without padding")
    elif not result.other_side:
        notes.append(f"padded on the {row.pads} only")
    return notes
