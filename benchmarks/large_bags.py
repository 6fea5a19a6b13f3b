"""Time and memory of an audit of bags of very many vectors, which are drawn when they are read.

    python -m benchmarks.large_bags --bags 50 --items 10000

The vectors have 512 numbers. An untrained gated model of the default size reads them: no file is needed, and no
training. Processor seconds, and the peak of memory of the process so far.
"""

import argparse
import hashlib
import resource
import time
from functools import partial

import numpy as np
from numpy.typing import NDArray

import heedmap as hm
from heedmap.data.assembly import to_audit
from heedmap.data.bags_in_memory import IN_MEMORY
from heedmap.data.item_vectors import ItemVectors, StoredBag
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.rows import LabelledTexts, Row
from heedmap.models.attention_classifier import TextClassifier
from heedmap.runs.run import Run
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings

WIDTH = 512


def drawn(seed: int, items: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((items, WIDTH), dtype=np.float32)


def run_of(bags: int, items: int) -> Run:
    stored = {}
    for i in range(bags):
        content = hashlib.sha256(str(i).encode()).digest()
        stored[str(i)] = StoredBag(items, partial(drawn, i, items), content, f"bag {i}")
    vectors = ItemVectors(stored, WIDTH, in_memory=True)
    rows = [Row(name, vectors.names(name), "") for name in stored]
    settings = ModelSettings(encoder="mlp", score="gated", embedding_size=WIDTH)
    model = TextClassifier(settings, ItemVocabulary(vectors), ["0", "1"]).eval()
    data = DataSettings.of(**IN_MEMORY, training=False)
    corpus = to_audit(LabelledTexts({"all": rows}, vectors=vectors), data, ["0", "1"])
    run_settings = RunSettings(fingerprint=corpus.fingerprint(), data=data, model=settings)
    return Run(run_settings, corpus, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bags", type=int, default=50)
    parser.add_argument("--items", type=int, default=10_000)
    options = parser.parse_args()
    start = time.process_time()
    run = run_of(options.bags, options.items)
    report("made", start)
    start = time.process_time()
    hm.audit(run, progress=False)
    report("audited", start)


def report(name: str, start: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name}: {time.process_time() - start:.1f} processor seconds, {peak} MiB", flush=True)


if __name__ == "__main__":
    main()
