"""What a transformer's questions read together, against each reading by itself: one run, one thread.

    python -m benchmarks.shared_passes --model MODEL --data SST

* leave-one-out under four imposed weightings at once, against three and one;
* integrated gradients, refined where they miss more than the tolerance, against Captum's, read anew each time.

Seconds are the processor's own, the least of two turns.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from captum.attr import IntegratedGradients

from benchmarks.transformers import opened, timed
from heedmap.experiments.methods.importance_measures import COMPLETENESS_TOLERANCE
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.integrated_gradients import PathReading, integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each_under
from heedmap.measures import log_odds

STEPS = (16, 32, 64, 128)
Texts = list[list[str]]


def refined(model: TransformerClassifier, texts: Texts) -> int:
    """Integrated gradients text by text; return how many steps the last readings have together."""
    total = 0
    for row, text in enumerate(texts):
        batch, readings = model.batch([text], [row]), dict[int, PathReading]()
        trace = model.trace(batch)
        for steps in STEPS:
            _, error = integrated_gradients(model, batch, trace, steps, readings=readings)
            if float(error) <= COMPLETENESS_TOLERANCE:
                break
        total += steps
    return total


def captums(model: TransformerClassifier, texts: Texts) -> int:
    """The same by Captum, every point again where the steps are doubled."""
    total = 0
    for row, text in enumerate(texts):
        batch = model.batch([text], [row])
        trace, embedded = model.trace(batch), model.embed(batch)
        baseline = embedded.masked_fill(model.token_positions(batch).unsqueeze(-1), 0.0)

        def target(path: Any, batch: Any = batch, trace: Any = trace) -> torch.Tensor:
            quick, model.quick = model.quick, None  # the whole model, unread rows included
            logits = model.logits_from(path, batch.repeated(len(path)))
            model.quick = quick
            return log_odds(logits, trace.predicted.repeat(len(path)))

        for steps in STEPS:
            _, error = IntegratedGradients(target).attribute(
                embedded, baselines=baseline, n_steps=steps, return_convergence_delta=True
            )
            if float(error.abs()) <= COMPLETENESS_TOLERANCE:
                break
        total += steps
    return total


def imposed(model: TransformerClassifier, texts: Texts, parts: tuple[slice, ...]) -> None:
    """Leave-one-out under four drawn weightings, those of each part in a reading of their own."""
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(4, *trace.attention.shape, generator=generator) * trace.support
    weights /= weights.sum(-1, keepdim=True).clamp(min=1e-9)
    for part in parts:
        logits_without_each_under(model, batch, trace, texts, weights[part])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--instances", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = opened(options)
    texts = options.texts
    together, apart = (slice(0, 4),), (slice(0, 3), slice(3, 4))
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "leave-one-out under imposed weights": (
            lambda: imposed(model, texts, together),
            lambda: imposed(model, texts, apart),
        ),
        "integrated gradients": (lambda: refined(model, texts), lambda: captums(model, texts)),
    }
    for name, sides in pairs.items():
        turns = [[timed(side) for side in sides] for _ in range(2)]
        ours, plain = (min(turn[side][1] for turn in turns) for side in (0, 1))
        steps = [result for result, _ in turns[0]]
        print(
            f"{name}: {ours:.1f} s, {plain:.1f} s, ratio {plain / ours:.2f}; steps {steps}",
            flush=True,
        )


if __name__ == "__main__":
    main()
