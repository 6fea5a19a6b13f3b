"""A training step of an encoder-decoder, all target steps at once, against the loop over steps.

    python -m benchmarks.sequences --json sequences.json

One thread. The loop is the same model as one would write it down: the encoder reads the source at once, the
decoder, the attention and the output go one target step after the other. `agree`: the same loss and the same
gradients. Sizes are those of Snell et al.'s copying experiment, and smaller.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from benchmarks.battery import Row, row, timed
from heedmap.data.sequences import Sequences
from heedmap.models.encoder_decoder import EncoderDecoderSettings
from heedmap.papers.snell.copy_task import Copies, CopyObjective, CopySettings

SIZES = ((32, 16, 10), (64, 32, 20), (64, 128, 40), (128, 256, 40))  # batch, units, symbols


def loop(objective: CopyObjective, batch: Copies) -> torch.Tensor:
    """The loss, one target step after the other."""
    model = objective.model
    states, state = model.encode(batch.source)
    losses = []
    for step in range(batch.inputs.shape[1]):
        embedded = model.source(batch.inputs[:, step : step + 1])
        decoded, state = model.decoder(embedded, state)
        scores = (model.queries(decoded) * states).sum(-1)
        context = (scores.softmax(-1).unsqueeze(-1) * states).sum(1)
        joined = torch.cat([decoded[:, 0], model.contexts[0](context)], -1)
        logits = model.output(torch.tanh(model.hidden(joined)))
        losses.append(functional.cross_entropy(logits, batch.source[:, step]))
    return torch.stack(losses).mean()


def gradients(objective: CopyObjective) -> list[torch.Tensor]:
    return [p.grad.clone() for p in objective.model.parameters()]


def compared(batch_size: int, size: int, symbols: int, repeat: int) -> Row:
    objective = CopyObjective(
        CopySettings(
            sequences=Sequences("permutations", symbols, symbols),
            model=EncoderDecoderSettings(size=size, embedding=size),
            batch_size=batch_size,
        )
    )
    batch = objective.batch(np.arange(batch_size))

    def step(loss: torch.Tensor) -> float:
        objective.optimizer.zero_grad()
        loss.backward()
        return loss.item()

    ours = timed(lambda: step(objective.loss(objective.model, batch)), repeat)
    found = gradients(objective)
    theirs = timed(lambda: step(loop(objective, batch)), repeat)
    agree = bool(np.isclose(ours[0], theirs[0], rtol=1e-5)) and all(
        torch.allclose(a, b, rtol=1e-3, atol=1e-6)
        for a, b in zip(found, gradients(objective), strict=True)
    )
    name = f"batch {batch_size}, {size} units, {symbols} symbols"
    return row(name, ours, theirs[1], agree, f"peak of the loop {theirs[2]:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [compared(*sizes, arguments.repeat) for sizes in SIZES]
    for one in rows:
        print(
            f"{one.step:40} {one.ours_s:8.3f} s  {one.plain_s:8.3f} s  {one.ratio:6.1f}  "
            f"{one.peak_mb:6.0f} MB  {'agree' if one.agree else 'DIFFER'}  {one.note}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in rows], indent=1))


if __name__ == "__main__":
    main()
