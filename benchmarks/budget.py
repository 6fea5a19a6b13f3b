"""What a bottom line with a budget costs, and how often it is the answer of all texts.

    heedmap audit --model MODEL --data SST --out runs/model --minutes 1
    python -m benchmarks.budget runs/model [--draws 200]

Reads the texts of a run in their drawing order until the bottom line is certain (processor seconds), then all
that an audit without a budget reads for it. These are drawn anew, without reading them again, to count in how
many of the draws the first certain answer is that of all texts.
"""

import argparse
import math
import time
from collections import Counter

import numpy as np
import pyarrow as pa

from heedmap.experiments.certainty import possible_answers
from heedmap.experiments.drawing import looks
from heedmap.experiments.pooling import by_text
from heedmap.experiments.questions.highlights import PER_CLASS, TEXTS
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.reading import Reader
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.rule import Answer, answer, map_numbers, texts_of
from heedmap.runs.audit_defaults import audit_defaults, texts_to_draw
from heedmap.runs.open import open_run
from heedmap.settings.audit import AuditSettings


def first_certain(tables: dict[str, pa.Table], order: np.ndarray, seed: int) -> tuple[Answer, int]:
    """Return the first certain answer of texts that are drawn in this order, and after how many texts."""
    drawn = {name: table.take(pa.array(order)) for name, table in tables.items()}
    texts, clusters = texts_of(drawn), text_numbers(drawn["instances"])
    for size in looks(len(order)):
        first = {name: column[:size] for name, column in texts.items()}
        possible = possible_answers(
            first, clusters[:size], len(order), packaged_rates().thresholds, seed
        )
        if len(possible) == 1 or size == len(order):
            return next(iter(possible)), size
    raise AssertionError("the last look is at all texts")


def main() -> None:
    """Print seconds, texts, and how often the draws have the answer of all texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--draws", type=int, default=200)
    arguments = parser.parse_args()
    began = time.process_time()
    run = open_run(arguments.run)
    print(f"opened in {time.process_time() - began:.1f} processor seconds")
    settings = AuditSettings.of(**audit_defaults(run.model, run.settings.data), minutes=60)
    total = max(TEXTS, PER_CLASS * len(run.model.classes))
    drawing = texts_to_draw(run.corpus, settings)
    for texts in (None, total):
        began = time.process_time()
        reader = Reader(run.model, drawing, total, settings, packaged_rates())
        reading = reader.read(texts, lambda: math.inf)
        seconds = time.process_time() - began
        print(
            f"{reading.texts} texts: {', '.join(reading.answers)} ({seconds:.1f} processor seconds)"
        )
    tables = by_text(reading.tables)
    whole = answer(map_numbers(texts_of(tables)), packaged_rates().thresholds)
    rng = np.random.default_rng(0)
    labels = tables["instances"]["label"].to_numpy()
    told: Counter[Answer] = Counter()
    sizes = []
    for seed in range(arguments.draws):
        # As texts are drawn: from each class in turn.
        order = rng.permutation(len(labels))
        ranks = np.zeros(len(order), dtype=int)
        for label in np.unique(labels):
            is_label = labels[order] == label
            ranks[is_label] = np.arange(is_label.sum())
        said, size = first_certain(tables, order[np.argsort(ranks, kind="stable")], seed)
        told[said] += 1
        sizes.append(size)
    print(f"all {len(labels)} texts say {whole}; {arguments.draws} draws: {dict(told)}")
    print("texts read (10, 50, 90 of 100 draws):", np.quantile(sizes, [0.1, 0.5, 0.9]))


if __name__ == "__main__":
    main()
