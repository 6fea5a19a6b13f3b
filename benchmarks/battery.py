"""The battery after training, each step against the plain loop of the papers: same model, same run.

    heedmap train --data SST --out runs/sst          # any two-class run will do; the target is SST
    python -m benchmarks.battery --run runs/sst --json battery.json

One thread. `ratio` = plain / ours, and `agree` says that both gave the same answer (or, for the adversary,
that the exact one is at least the search's on every instance). `peak_mb` is the most memory that our step
had beyond what stood before it. Trains nothing.
"""

import argparse
import ctypes
import gc
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from captum.attr import IntegratedGradients

from benchmarks import plain
from heedmap.counterfactual.exact import adversary as optimum
from heedmap.counterfactual.jain_wallace_search import best_feasible, search_adversaries
from heedmap.counterfactual.permute import permuted_logits
from heedmap.data.batches import Batch, Encoded, scatter_rows, sorted_batches
from heedmap.experiments.methods.kendall import kendall_tau
from heedmap.experiments.methods.readout import linear
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import change_in_prediction, log_odds
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.kernels import product
from heedmap.models.trace import Trace
from heedmap.runs.open import open_run

EPSILON = 0.01
TOKENS = 16_384
STEPS = 16
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Row:
    """One step."""

    step: str
    ours_s: float
    plain_s: float
    ratio: float
    peak_mb: float
    agree: bool
    note: str = ""


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def timed(
    work: Callable[[], Any], repeat: int = 1, clock: Callable[[], float] = time.perf_counter
) -> tuple[Any, float, float]:
    """Result, seconds (the least of `repeat` calls), and the peak of memory above the start, in MB."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(
        0
    )  # what an earlier step gave back is not this one's to use unseen
    start, peak, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    seconds, result = [], None
    for _ in range(repeat):
        begin = clock()
        result = work()
        seconds.append(clock() - begin)
    done.set()
    watcher.join()
    return result, min(seconds), max(0, peak[0] - start) / 2**20


def row(step: str, ours: Any, plain_seconds: float, agree: bool, note: str = "") -> Row:
    _, seconds, peak = ours
    return Row(step, seconds, plain_seconds, plain_seconds / seconds, peak, agree, note)


def fair(times: dict[type, float], ours: Any) -> str:
    seconds = times[plain.Fair]
    return f"without graph and packing {seconds:.2f} s, ratio {seconds / ours[1]:.1f}"


def own_batches(split: Encoded) -> list[Batch]:
    return [split.batch(rows) for rows in sorted_batches(split.lengths, TOKENS)]


def in_order(traces: list[Trace], values: list[torch.Tensor]) -> np.ndarray:
    return scatter_rows([t.rows for t in traces], values).numpy()


def permutation(model: AttentionClassifier, split: Encoded, traces: list[Trace]) -> Row:
    def ours() -> np.ndarray:
        rng, medians = np.random.default_rng(0), []
        for trace in traces:
            weights, relevance, bias = linear(trace)
            logits = permuted_logits(weights, trace.mask, relevance, bias, 100, rng)
            before = trace.logits.unsqueeze(1).expand_as(logits)
            medians.append(change_in_prediction(before, logits).quantile(0.5, dim=1))
        return in_order(traces, medians)

    fast = timed(ours, repeat=3)
    times, loops = {}, []
    for seed, read in enumerate((plain.Fair(model), plain.Literal(model)), start=1):
        slow, seconds, _ = timed(
            lambda read=read, seed=seed: plain.permutation(
                read, split, 100, np.random.default_rng(seed)
            )
        )
        times[type(read)] = seconds
        loops.append(np.array([slow[i] for i in range(len(split))]))
    # Other random draws: the same distribution, so means and instances agree as well as two runs of the loop.
    gap = abs(fast[0].mean() - loops[1].mean())
    alike, noise = (np.corrcoef(one, loops[1])[0, 1] for one in (fast[0], loops[0]))
    agree = gap < 0.005 and alike > noise - 0.01
    note = f"gap of means {gap:.5f}; correlation {alike:.3f}, of two loops {noise:.3f}; {fair(times, fast)}"
    return row("permutation, P = 100", fast, seconds, bool(agree), note)


def adversary(model: AttentionClassifier, split: Encoded, traces: list[Trace]) -> list[Row]:
    def optima() -> np.ndarray:
        return in_order(traces, [optimum(*linear(t), t.mask, EPSILON).jsd for t in traces])

    exact = timed(optima, repeat=3)

    def search() -> np.ndarray:
        generator, found = torch.Generator().manual_seed(0), []
        for trace in traces:
            weights, relevance, bias = linear(trace)
            candidates = search_adversaries(
                weights.float(), relevance.float(), bias.float(), trace.mask, generator=generator
            )
            found.append(
                best_feasible(candidates.double(), weights, relevance, bias, trace.mask, EPSILON)[0]
            )
        return in_order(traces, found)

    searched = timed(search)
    slow, seconds, _ = timed(
        lambda: plain.adversary(model, split, EPSILON, torch.Generator().manual_seed(1))
    )
    slow = np.array([slow[i] for i in range(len(split))])
    best = float((exact[0] - slow).min())
    note = f"mean JSD exact {exact[0].mean():.3f}, search {slow.mean():.3f}; least difference {best:.1e}"
    gap = abs(searched[0].mean() - slow.mean())
    return [
        row(
            "exact adversary against the 500-step, K = 5 search", exact, seconds, best > -1e-5, note
        ),
        row(
            "the paper's search itself",
            searched,
            seconds,
            bool(gap < 0.02),
            f"gap of means {gap:.4f}",
        ),
    ]


def leave_one_out(
    model: AttentionClassifier, split: Encoded, step: str, rated: bool = False
) -> Row:
    batches = own_batches(split)
    none: list[list[str]] = []

    def ours() -> dict[int, np.ndarray]:
        found = {}
        for batch in batches:
            logits = logits_without_each(model, batch, none)
            trace = model.trace(batch)
            change = change_in_prediction(trace.logits.unsqueeze(1).expand_as(logits), logits)
            for i, where in enumerate(batch.rows.tolist()):
                found[where] = change[i, batch.mask[i]].numpy()
        return found

    before = matrix_rate() if rated else 0.0
    fast = timed(ours, repeat=2)
    rate = (before + matrix_rate()) / 2 if rated else 0.0
    times = {}
    for read in (plain.Fair(model), plain.Literal(model)):
        slow, seconds, _ = timed(lambda read=read: plain.leave_one_out(read, split))
        times[type(read)] = seconds
    gap = max(float(np.abs(fast[0][i] - np.array(slow[i])).max()) for i in slow if len(slow[i]) > 1)
    note = f"largest difference {gap:.1e}; {fair(times, fast)}"
    if rated:
        # Deletion × later position, both directions: a recurrent product and one for the score.
        hidden = model.encoder.size // 2
        wide = 4 * hidden + model.score.hidden.out_features
        operations = float((split.lengths**2).sum()) * 2 * hidden * wide
        note += f"; {operations / fast[1] / 1e9:.0f} GFLOP/s of the machine's {rate:.0f} in a large product"
    return row(step, fast, seconds, bool(gap < 1e-5), note)


def integrated(model: AttentionClassifier, split: Encoded, texts: int = 300) -> Row:
    """Of the first texts; Captum goes through the embeddings, in batches of the same texts."""
    words = [split.ids[start:end] for start, end in pairwise(split.offsets[: texts + 1])]
    first = Encoded(words, split.labels[:texts])
    parts = [(batch, model.trace(batch)) for batch in own_batches(first)]

    def ours() -> list[torch.Tensor]:
        return [integrated_gradients(model, b, t, STEPS)[0] for b, t in parts]

    def captums() -> list[torch.Tensor]:
        found = []
        for batch, trace in parts:
            text = model.embed(batch)
            baseline = text.masked_fill(model.token_positions(batch).unsqueeze(-1), 0.0)

            def target(points: torch.Tensor, batch: Batch = batch, trace: Trace = trace) -> Any:
                times = len(points) // len(batch.rows)
                logits = model.logits_from(points, batch.repeated(times))
                return log_odds(logits, trace.predicted.repeat(times))

            at_once = max(len(text), TOKENS // text.shape[1])
            values = IntegratedGradients(target).attribute(
                text, baselines=baseline, n_steps=STEPS, internal_batch_size=at_once
            )
            found.append(values.sum(-1)[:, 1:-1].abs().masked_fill(~batch.mask, 0.0))
        return found

    fast = timed(ours, repeat=2, clock=time.process_time)
    slow, seconds, _ = timed(captums, repeat=2, clock=time.process_time)
    gap = max(float((a - b).abs().max()) for a, b in zip(fast[0], slow, strict=True))
    step = f"integrated gradients, {STEPS} steps, against Captum"
    return row(step, fast, seconds, gap < 1e-4, f"{texts} texts; largest difference {gap:.1e}")


def matrix_rate(size: int = 1536, seconds: float = 2.0) -> float:
    """GFLOP/s of a large square product, sustained, by the fastest library that PyTorch has."""
    a = torch.randn(size, size)
    product(a, a)
    begin, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds:
        product(a, a)
        count += 1
    return 2 * size**3 * count / spent / 1e9


def kendall(traces: list[Trace]) -> Row:
    first, second = [], []
    for trace in traces:
        relevance = linear(trace)[1]
        for i, n in enumerate(trace.mask.sum(1).tolist()):
            first.append(trace.heatmap[i, :n].double().numpy())
            second.append(relevance[i, :n, 1].abs().numpy())

    def ours() -> np.ndarray:
        found = []
        for trace in traces:
            relevance = linear(trace)[1][..., 1].abs()
            values = torch.stack([trace.heatmap.double(), relevance], dim=1)
            for part, mask in zip(values.split(256), trace.mask.split(256), strict=True):
                found.append(kendall_tau(part, mask).tau[:, 0, 1])
        return torch.cat(found).numpy()

    fast = timed(ours, repeat=3)
    slow, seconds, _ = timed(lambda: plain.kendall(first, second))
    agree = np.allclose(fast[0], slow, atol=1e-12, equal_nan=True)
    return row("Kendall tau of a split against a scipy loop", fast, seconds, bool(agree))


def main() -> None:
    """Print the table; write the rows where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--run", required=True, help="a trained two-class run folder")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = open_run(options.run)
    model = run.model
    split = run.encoded(run.corpus.splits["test"])
    traces = [model.trace(batch) for batch in own_batches(split)]
    ids = np.random.default_rng(0).integers(4, len(model.vocabulary), (64, 182))
    ids[:, 0], ids[:, -1] = 2, 3
    long = Encoded(list(ids), np.zeros(64, dtype=np.int64))
    mean = split.lengths.mean()
    print(f"{len(split)} texts, mean length {mean:.1f}, longest {split.lengths.max()}; one thread")
    rows = [
        permutation(model, split, traces),
        *adversary(model, split, traces),
        leave_one_out(model, split, f"leave-one-out, mean length {mean:.0f}"),
        leave_one_out(model, long, "leave-one-out, length 180 (64 documents)", rated=True),
        integrated(model, split),
        kendall(traces),
    ]
    print(f"{'step':52} {'ours s':>8} {'plain s':>8} {'ratio':>7} {'peak MB':>8} agree")
    for r in rows:
        print(
            f"{r.step:52} {r.ours_s:8.3f} {r.plain_s:8.2f} {r.ratio:7.1f} {r.peak_mb:8.0f} {r.agree}"
        )
        if r.note:
            print(f"    {r.note}")
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
