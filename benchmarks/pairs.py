"""Leave-one-out of pairs of texts against the papers' loop: same model, same run, one thread.

    python -m benchmarks.pairs --json pairs.json

Premises as long as SNLI's (about 14 tokens; hidden size 128, 300-dimensional) and stories of bAbI's third task
(about 300 tokens; 32 and 50), in the papers' batches. `Released` reads as the released code does: for every
deletion text and query are read again, packed, with an autograd graph that nobody needs. `Today` is the same
loop without the graph and on our encoder, the query read once a batch. Seconds are the processor's own, of the
median of some rounds in which the three take turns. The models are not trained: no number here depends on it.
"""

import argparse
import copy
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks import plain
from benchmarks.battery import TOKENS, timed
from heedmap.data.babi import stories
from heedmap.data.babi_rows import row_of
from heedmap.data.batches import EncodedPairs, PairBatch, sorted_batches
from heedmap.data.texts import Pair
from heedmap.data.vocabulary import Vocabulary
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import change_in_prediction
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.settings.models import ModelSettings

WORDS = [f"w{i}" for i in range(5000)]


@dataclass
class Row:
    """One kind of pairs; seconds of the processor, memory beyond what stood before, in MB."""

    name: str
    texts: int
    mean_length: float
    ours_s: float
    released_s: float
    today_s: float
    ratio: float
    ratio_today: float
    ours_mb: float
    released_mb: float
    largest_difference: float


class Today:
    """Probabilities (B, C) of a batch; the query's vector is kept from one deletion to the next."""

    def __init__(self, model: AttentionClassifier) -> None:
        self.model, self.graph = model, False

    def query(self, batch: PairBatch) -> Tensor | None:
        return self.model.encode_query(batch)

    def read(self, batch: PairBatch, query: Tensor | None) -> Tensor:
        states = self.model.encode(self.model.embed(batch), batch)
        return self.decode(states, batch, query)

    def decode(self, states: Tensor, batch: PairBatch, query: Tensor | None) -> Tensor:
        context = torch.matmul(self.model.attend(states, batch, query), states)
        logits = self.model.finish(self.model.projection(context), batch, query)
        return logits.squeeze(1).softmax(-1)


class Released(Today):
    """Everything again for every deletion, from packed sequences, with a graph."""

    def __init__(self, model: AttentionClassifier) -> None:
        super().__init__(copy.deepcopy(model).requires_grad_(True))
        self.graph = True
        self.text, self.asked = (
            plain.one_module(each.encoder) for each in (self.model, self.model.query)
        )

    def query(self, batch: PairBatch) -> None:
        return None

    def read(self, batch: PairBatch, query: None) -> Tensor:
        token_positions = plain.packed(self.text, self.model.embed(batch), batch.lengths + 2)
        lengths = batch.query_lengths + 2
        of_query = plain.packed(self.asked, self.model.query.embedding(batch.query_ids), lengths)
        last = self.model.query.encoder.last(of_query, lengths).unsqueeze(1)
        return self.decode(token_positions[:, 1:-1], batch, last)


def loop(read: Today, split: EncodedPairs, size: int) -> dict[int, np.ndarray]:
    """TVD of every token: for each position, delete its column and read the whole batch again."""
    found = {}
    with torch.set_grad_enabled(read.graph):
        for batch in plain.batches(split, size):
            query = read.query(batch)
            before, columns = read.read(batch, query).detach(), []
            for t in range(batch.mask.shape[1]):
                after = read.read(plain.without(batch, t), query)
                columns.append(0.5 * (after - before).abs().sum(-1).detach())
            values = torch.stack(columns, dim=1).numpy()
            for i, row in enumerate(batch.rows.tolist()):
                found[row] = values[i, : int(batch.lengths[i])]
    return found


def ours(model: AttentionClassifier, split: EncodedPairs) -> dict[int, np.ndarray]:
    found = {}
    for rows in sorted_batches(split.lengths, TOKENS):
        batch = split.batch(rows)
        trace, logits = model.trace(batch), logits_without_each(model, batch, [])
        change = change_in_prediction(trace.logits.unsqueeze(1).expand_as(logits), logits)
        for i, row in enumerate(rows.tolist()):
            found[row] = change[i, batch.mask[i]].numpy()
    return found


def measure(
    name: str, texts: list[Pair], sizes: tuple[int, int], classes: int, batch: int, rounds: int
) -> Row:
    embedding, hidden = sizes
    settings = ModelSettings(embedding_size=embedding, hidden_size=hidden)
    torch.manual_seed(0)
    vocabulary = Vocabulary(sorted({word for text in texts for word in [*text, *text.query]}))
    model = PairClassifier(settings, vocabulary, [str(c) for c in range(classes)])
    model.eval().requires_grad_(False)
    split = model.encoded(texts, np.zeros(len(texts), dtype=np.int64))
    work = {
        "ours": lambda: ours(model, split),
        "released": lambda: loop(Released(model), split, batch),
        "today": lambda: loop(Today(model), split, batch),
    }
    ours(model, split)  # warms up
    took = [
        {key: timed(each, clock=time.process_time) for key, each in work.items()}
        for _ in range(rounds)
    ]
    seconds = {key: statistics.median(each[key][1] for each in took) for key in work}
    against = {
        key: statistics.median(each[key][1] / each["ours"][1] for each in took) for key in work
    }
    found = {key: took[0][key][0] for key in work}
    gap = max(
        float(np.abs(found["ours"][i] - found[other][i]).max())
        for other in ("released", "today")
        for i in range(len(split))
        if split.lengths[i] > 1
    )
    assert gap < 1e-5, f"{name}: the ways differ by {gap:.1e}"
    peak = {key: max(each[key][2] for each in took) for key in work}
    return Row(
        name, len(texts), float(split.lengths.mean()),
        seconds["ours"], seconds["released"], seconds["today"], against["released"], against["today"],
        peak["ours"], peak["released"], gap,
    )  # fmt: skip


def premises(count: int) -> list[Pair]:
    """Random words: premises of about 14 tokens, as long as SNLI's, and hypotheses of about 8."""
    rng = np.random.default_rng(0)

    def text(mean: float, spread: float) -> list[str]:
        length = max(2, round(rng.normal(mean, spread)))
        return [WORDS[i] for i in rng.integers(0, len(WORDS), length)]

    return [Pair(text(14, 6), text(8, 3)) for _ in range(count)]


def told(count: int) -> list[Pair]:
    """Generated stories of the third task with their questions: a sample of 1000."""
    world = stories(3, 1000, 0)
    chosen = np.random.default_rng(0).permutation(len(world))[:count]
    rows = [row_of(world[i], str(i)) for i in chosen]
    return [Pair(row.tokens, row.query or []) for row in rows]


def main() -> None:
    """Print the table; write the rows where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--premises", type=int, default=1024)
    parser.add_argument("--stories", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"one thread, torch {torch.__version__}, processor seconds, median of {options.rounds}")
    kinds = [
        ("premises, SNLI's length", premises(options.premises), (300, 128), 3, 128),
        ("stories, bAbI 3", told(options.stories), (50, 32), 6, 50),
    ]
    found = []
    for name, pairs, sizes, classes, batch in kinds:
        if not pairs:
            continue
        found.append(r := measure(name, pairs, sizes, classes, batch, options.rounds))
        print(
            f"{r.name:24} {r.texts} texts of {r.mean_length:.1f}: ours {r.ours_s:.2f} s, released "
            f"{r.released_s:.2f} s (x {r.ratio:.1f}), today {r.today_s:.2f} s (x {r.ratio_today:.1f}); "
            f"peak {r.ours_mb:.0f} MB, released {r.released_mb:.0f} MB; differ by {r.largest_difference:.0e}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
