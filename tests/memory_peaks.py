"""Programs whose memory is measured, each in its own process; run by `test_memory.py`.

    python memory_peaks.py LIMIT NAME

Limits the address space to LIMIT megabytes and prints the peak memory in megabytes.
"""

import re
import resource
import sys

import numpy as np
import torch
from conftest import random_texts, small_model
from making import evidence_of

from heedmap.data.corpus import Corpus, Split
from heedmap.experiments.methods import kendall
from heedmap.runs.audit import audit
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings

SHORT = AuditSettings(permutations=7, descent_steps=3, search_steps=3, search_instances=8)


def thousand_classes(texts=6000):
    rng = np.random.default_rng(0)
    names = [f"class {i}" for i in range(1000)]
    splits = {}
    for name, count in (("train", texts), ("dev", 1000), ("test", 1000)):
        labels = np.arange(count) % 1000
        tokens = [[f"m{c}", *(f"w{w}" for w in rng.integers(0, 50, 5))] for c in labels]
        splits[name] = Split([f"{name}-{i}" for i in range(count)], tokens, labels)
    return Corpus("thousand", names, splits, DataSettings(source="thousand"))


def trains_on_long_texts(tokens=4000):
    rng = np.random.default_rng(0)
    texts = [[f"w{w}" for w in rng.integers(0, 40, tokens)] for _ in range(32)]
    split = Split([str(i) for i in range(32)], texts, np.arange(32) % 2)
    corpus = Corpus(
        "long", ["a", "b"], dict.fromkeys(("train", "dev", "test"), split), DataSettings(source="l")
    )
    train(corpus, epochs=1, out=None)


def trains_on_short_texts():
    trains_on_long_texts(20)


def audits_a_thousand_classes():
    run = train(thousand_classes(), encoder="average", embedding_size=16, hidden_size=16, epochs=1)
    audit(run, instances=40, permutations=10)


def audits_long_texts():
    model = small_model()
    held = evidence_of(model, random_texts([4000, 4000]), SHORT)
    for name in ("gradient", "integrated_gradients", "permutation", "agreement", "adversary"):
        held.table(name) if name != "agreement" else tau_of_long_texts()


def tau_of_long_texts():
    values = torch.rand(1, 4, 4000, dtype=torch.float64)
    kendall.kendall_tau(values, torch.ones(1, 4000, dtype=torch.bool))


def audits_short_texts():
    held = evidence_of(small_model(), random_texts([400, 400]), SHORT)
    for name in ("gradient", "integrated_gradients", "permutation", "adversary"):
        held.table(name)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20, -1))
    globals()[sys.argv[2]]()
    # Not ru_maxrss, which begins with that of the process that started this one.
    with open("/proc/self/status") as status:
        peak = int(re.search(r"VmHWM:\s*(\d+)", status.read())[1]) // 1024
    sys.stdout.write(f"{peak}\n")
