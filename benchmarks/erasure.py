"""Every erasure of a test split from its trace, against the loop that removes one item and decodes again.

    python -m benchmarks.erasure --data IMDB --json erasure.json

One thread. A model without an encoder learns for two epochs, so that decisions are real ones; what is timed
depends on the texts' lengths and the classes alone. `agree`: both sides flip the same texts at the same items.
The last rows are the same work on ten times as many texts, for the memory.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from benchmarks.battery import Row, row, timed
from heedmap.counterfactual.weight_erasure import smallest, without_each
from heedmap.data.corpus import Split
from heedmap.data.load import load
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.registry import registered
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.trace import Trace
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings

TABLES = ("erasure", "decision_flips", "class_erasure")


def remove_one_and_decode(
    model: TextClassifier, traces: Sequence[Trace], texts: int
) -> list[list[bool]]:
    """Set one weight to 0, scale the others, sum the read-out, decode: one item after the other."""
    flips = []
    for trace in traces:
        weights, relevance, bias = linear(trace)
        for i in range(len(trace.rows)):
            if len(flips) == texts:
                return flips
            size = int(trace.mask[i].sum())
            before = int(trace.predicted[i])
            row_flips = []
            for t in range(size):
                kept = weights[i, :size].clone()
                kept[t] = 0.0
                mass = kept.sum()
                kept = kept / mass if mass > 0 else kept
                logits = kept @ relevance[i, :size] + bias
                row_flips.append(int(logits.argmax()) != before)
            flips.append(row_flips)
    return flips


def every_one(traces: Sequence[Trace], texts: int) -> list[list[bool]]:
    """The same in closed form."""
    flips: list[list[bool]] = []
    for trace in traces:
        weights, relevance, bias = linear(trace)
        logits = without_each(weights, relevance, bias, trace.mask)
        changed = logits.argmax(-1) != trace.predicted.unsqueeze(1)
        flips += [row[mask].tolist() for row, mask in zip(changed, trace.mask, strict=True)]
    return flips[:texts]


def one_after_the_other(traces: Sequence[Trace], texts: int) -> list[int]:
    """Erase along attention, decode after each item: how many until another class wins, 0 if none ever does.

    The last item stays.
    """
    counts: list[int] = []
    for trace in traces:
        weights, relevance, bias = linear(trace)
        for i in range(len(trace.rows)):
            if len(counts) == texts:
                return counts
            size = int(trace.mask[i].sum())
            before, kept, found = int(trace.predicted[i]), weights[i, :size].clone(), 0
            order = kept.argsort(descending=True, stable=True).tolist()
            for k, t in enumerate(order[:-1], start=1):
                kept[t] = 0.0
                mass = kept.sum()
                scaled = kept / mass if mass > 0 else kept
                if int((scaled @ relevance[i, :size] + bias).argmax()) != before:
                    found = k
                    break
            counts.append(found)
    return counts


def whole(model: TextClassifier, split: Split) -> Callable[[], int]:
    """Every erasure statistic of a split, its trace included: the tables `TABLES`."""

    def work() -> int:
        evidence = AuditContext(model, split, AuditSettings(), registered())
        return sum(evidence.table(name).num_rows for name in TABLES)

    return work


def main() -> None:
    """Print the table, and write it as JSON if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--label", default=None)
    parser.add_argument("--looped", type=int, default=400, help="texts that the loops read")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    corpus = load(args.data, label=args.label, max_tokens=2000, train_texts=4000)
    model = train(corpus, encoder="none", score="wide-additive", embedding_size=100, epochs=2).model
    assert isinstance(model, TextClassifier)
    split = corpus.splits["test"]
    sizes = [len(text) for text in split.tokens]
    evidence = AuditContext(model, split, AuditSettings(), registered())
    traces, tracing, _ = timed(lambda: list(evidence.traces))
    print(
        f"{len(split)} texts, mean length {np.mean(sizes):.0f}, longest {max(sizes)}; "
        f"traced in {tracing:.1f} s; loops over {args.looped}"
    )
    share = sum(map(len, every_one(traces, len(split)))) / sum(
        map(len, every_one(traces, args.looped))
    )
    rows: list[Row] = []
    slow, seconds, _ = timed(lambda: remove_one_and_decode(model, traces, args.looped))
    fast = timed(lambda: every_one(traces, len(split)), repeat=3)
    rows.append(
        row(
            "every single item",
            fast,
            seconds * share,
            fast[0][: args.looped] == slow,
            f"the loop took {seconds:.1f} s for {args.looped} texts",
        )
    )

    def least() -> np.ndarray:
        return np.concatenate([smallest(*linear(t), t.mask, t.predicted)[0].count for t in traces])

    exact = timed(least, repeat=3)
    evidence.table("leave_one_out")
    tables = timed(lambda: [evidence.table(name) for name in ("erasure", "decision_flips")])
    in_order = np.concatenate([t.rows for t in traces])
    along = tables[0][1]["count_attention"].to_numpy(zero_copy_only=False)[in_order]
    counts, seconds, _ = timed(lambda: one_after_the_other(traces, args.looped))
    agree = np.array_equal(
        np.nan_to_num(along[: args.looped]),
        np.where(np.array(sizes)[in_order][: args.looped] > 1, counts, 0),
    )
    rows.append(
        Row(
            "smallest sets, exact",
            exact[1],
            float("nan"),
            float("nan"),
            exact[2],
            bool((exact[0][along > 0] <= along[along > 0]).all()),
            "agree: never more than along attention",
        )
    )
    rows.append(
        row(
            "tables erasure and flips, eleven rankings",
            tables,
            11 * seconds * share,
            agree,
            "the loop: eleven times the one along attention",
        )
    )
    by_class, seconds, peak = timed(lambda: evidence.table("class_erasure"))
    asked = sum(size > 1 for size in sizes)
    per_text = 1 if len(model.classes) == 2 else len(model.classes)
    note = f"tau in {evidence.settings.search_instances} texts"
    rows.append(
        Row(
            "table class_erasure",
            seconds,
            float("nan"),
            float("nan"),
            peak,
            by_class.num_rows == asked * per_text,
            note,
        )
    )
    del traces, evidence
    for times in (1, 10):
        many = split.take(np.tile(np.arange(len(split)), times))
        found, seconds, peak = timed(whole(model, many))
        rows.append(
            Row(
                f"all, trace and leave-one-out included, {len(many)} texts",
                seconds,
                float("nan"),
                float("nan"),
                peak,
                found == times * (2 * len(split) + asked * per_text),
            )
        )
    for one in rows:
        print(
            f"| {one.step} | {one.ours_s:.2f} | {one.plain_s:.1f} | {one.ratio:.0f} | {one.peak_mb:.0f} "
            f"| {one.agree} | {one.note} |"
        )
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
