"""Training steps of encoder-decoders, all target steps at once, against the loop; relevance in blocks.

    python -m benchmarks.sequences --json sequences.json

One thread. The loop is the same model as one would write it down: the encoder reads the source at once, the
decoder, the attention and the output go one target step after the other. `agree`: the same loss and the same
gradients. Sizes are those of Snell et al.'s copying experiment, and smaller; then of their translator, trained
on sentences whose lengths are those of Multi30k (mean 13): the loop reads them in random order, padded to the
longest of a batch, ours in batches of similar length (`agree`: the same loss of a batch of one length). Last,
the output relevance of all source positions: in blocks, against all the attention on one position after the
other.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from benchmarks.battery import Row, row, timed
from heedmap.data.batches import bucketed_batches
from heedmap.data.sequences import Sequences
from heedmap.importance.output_relevance import output_relevance
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.translating import TranslationObjective
from heedmap.papers.kit.translators import NO_TARGET, Encoded, Translations
from heedmap.papers.snell.copy_task import Copies, CopyObjective, CopySettings
from heedmap.papers.snell.translation_task import read_sentence

SIZES = ((32, 16, 10), (64, 32, 20), (64, 128, 40), (128, 256, 40))  # batch, units, symbols
TRANSLATORS = (
    (32, 128, 1, 2000),
    (16, 256, 2, 8000),
)  # batch, units, layers, sub-words: quick, paper
SENTENCES = 256


def loop(objective: CopyObjective, batch: Copies) -> torch.Tensor:
    """The loss, one target step after the other."""
    model = objective.model
    states, state = model.encode(model.source(batch.source))
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


def sentences(symbols: int) -> Encoded:
    """Draw pairs of sentences, sources and targets of similar length."""
    rng = np.random.default_rng(0)
    lengths = rng.normal(13, 4, SENTENCES).clip(4, 40).astype(int)
    others = (lengths + rng.integers(-2, 3, SENTENCES)).clip(3)
    source, target = (
        [rng.integers(3, symbols, n).tolist() for n in side] for side in (lengths, others)
    )
    words = [list(range(len(one))) for one in source]
    return Encoded(source, target, words, words)


def translator_loop(model: EncoderDecoder, batch: Translations) -> torch.Tensor:
    """The loss of a batch, one target step after the other; padding is read, and has no weight."""
    states, state = model.encode(model.source(batch.source))
    padding = ~model.real(batch.lengths, states.shape[1])
    logits = []
    for step in range(batch.inputs.shape[1]):
        decoded, state = model.decode(batch.inputs[:, step : step + 1], state)
        scores = (model.queries(decoded) * states).sum(-1).masked_fill(padding, -torch.inf)
        context = (scores.softmax(-1).unsqueeze(-1) * states).sum(1)
        joined = torch.cat([decoded[:, 0], model.contexts[0](context)], -1)
        logits.append(model.output(torch.relu(model.hidden(joined))))
    every = torch.stack(logits, 1)
    return functional.cross_entropy(
        every.flatten(0, 1), batch.targets.flatten(), ignore_index=NO_TARGET
    )


def translated(batch_size: int, size: int, layers: int, symbols: int, repeat: int) -> list[Row]:
    """Compare the training on some sentences, and what is read off a trained model."""
    torch.manual_seed(0)
    settings = EncoderDecoderSettings(
        size=size,
        embedding=size,
        bidirectional=True,
        activation="relu",
        shared=False,
        layers=layers,
    )
    model, pairs = EncoderDecoder(settings, symbols), sentences(symbols)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    objective = TranslationObjective(
        model,
        pairs,
        pairs,
        epochs=1,
        batch_size=batch_size,
        learning_rate=1e-3,
        seed=0,
        made_with={},
    )

    def read(batches: list[np.ndarray], loss: Callable[[Translations], torch.Tensor]) -> None:
        for rows in batches:
            optimizer.zero_grad()
            loss(pairs.batch(rows)).backward()

    rng = np.random.default_rng(0)
    similar = bucketed_batches(pairs.lengths, batch_size, rng)
    mixed = list(rng.permutation(SENTENCES).reshape(-1, batch_size))
    ours = timed(lambda: read(similar, lambda b: objective.loss(model, b)), repeat)
    theirs = timed(lambda: read(mixed, lambda b: translator_loop(model, b)), repeat)
    same = pairs.batch([int(i) for i in np.flatnonzero(pairs.lengths == pairs.lengths[0])])
    agree = torch.allclose(objective.loss(model, same), translator_loop(model, same), rtol=1e-5)
    name = f"translator, batch {batch_size}, {size} units, {layers} layers, {symbols} sub-words"
    return [
        row(name, ours, theirs[1], agree, f"peak of the loop {theirs[2]:.0f} MB"),
        relevance(model, pairs, repeat),
    ]


@torch.no_grad()
def relevance(model: EncoderDecoder, pairs: Encoded, repeat: int) -> Row:
    """Compare the output relevance of some sentences."""
    read = [read_sentence(model, pairs, row) for row in range(20)]

    def blocks() -> list[torch.Tensor]:
        return [output_relevance(model, s.decoded, s.states, s.targets[None])[0] for s in read]

    def one_by_one() -> list[torch.Tensor]:
        found = []
        for s in read:
            every = []
            for position in range(s.states.shape[1]):
                context = s.states[:, None, position : position + 1].expand(
                    -1, -1, len(s.targets), -1
                )
                share = model.emit(s.decoded, context).log_softmax(-1)[0]
                every.append(share.gather(-1, s.targets[:, None])[:, 0])
            found.append(torch.stack(every, -1))
        return found

    ours, theirs = timed(blocks, repeat), timed(one_by_one, repeat)
    agree = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(ours[0], theirs[0], strict=True))
    name = f"output relevance, {len(read)} sentences, {len(model.output.weight)} sub-words"
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
    for sizes in TRANSLATORS:
        rows += translated(*sizes, arguments.repeat)
    for one in rows:
        print(
            f"{one.step:66} {one.ours_s:8.3f} s  {one.plain_s:8.3f} s  {one.ratio:6.1f}  "
            f"{one.peak_mb:6.0f} MB  {'agree' if one.agree else 'DIFFER'}  {one.note}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in rows], indent=1))


if __name__ == "__main__":
    main()
