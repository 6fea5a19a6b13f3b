"""The report of 2,000 texts: its bytes, how much of them the read-outs take, and the time to make it.

    python -m benchmarks.report_page --json report_page.json
    CHROMIUM=/usr/bin/chromium python -m benchmarks.report_page --paint   # and until it is first seen

The models are untrained and have no encoder; the numbers of texts, words and classes alone decide the size.
"""

import argparse
import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.battery import timed
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import applicable, make_findings, registered
from heedmap.models.attention_classifier import TextClassifier
from heedmap.report.page import page
from heedmap.report.text_data import pack_texts
from heedmap.runs.audited import Audit
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings

TEXTS = 2000
SHAPES = ((20, 2), (20, 20), (200, 2), (200, 20))  # words per text, and classes
WORDS = [f"word{i}" for i in range(8000)]
# The slow questions show little more of a text than others do.
LEFT_OUT = ("eraser", "smallest_change", "class_erasure", "better_maps", "alternatives")


def audit(texts: int, length: int, classes: int) -> Audit:
    """Ask an untrained model about texts of random words, rare ones as rare as in a language."""
    rng = np.random.default_rng(0)
    tokens = [[WORDS[i % len(WORDS)] for i in rng.zipf(1.2, length)] for _ in range(texts)]
    split = Split([f"t{i}" for i in range(texts)], tokens, np.arange(texts) % classes)
    torch.manual_seed(0)
    settings = ModelSettings(encoder="average", embedding_size=50, hidden_size=32)
    model = TextClassifier(settings, Vocabulary(WORDS), [f"class {c}" for c in range(classes)])
    model = model.eval().requires_grad_(False)
    quick = AuditSettings(
        permutations=5, integrated_gradients_steps=2, descent_steps=2, instances=texts
    )
    context = AuditContext(model, split, quick, registered())
    # Of 20 classes an adversary takes hours; its weights are 4 bytes per word more, less what is compressed.
    left_out = LEFT_OUT if classes == 2 else (*LEFT_OUT, "adversary")
    names = [name for name in applicable(model, split) if name not in left_out]
    tables = {name: context.table(name) for name in names}
    run = RunSettings(
        fingerprint="0" * 16,
        data=DataSettings(source="made"),
        model=settings,
        train=TrainSettings(),
        audit=quick,
    )
    findings = make_findings(tables, quick, model.classes, settings)
    return Audit(run, model.classes, tables, findings, {"name": "made"})


def first_paint(text: str) -> float:
    """Return the seconds from opening a page in Chromium to its first content on the screen."""
    from playwright.sync_api import sync_playwright

    entry = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = Path(folder) / "report.html"
        path.write_text(text, "utf-8")
        browser = started.chromium.launch(
            executable_path=os.environ["CHROMIUM"], args=["--no-sandbox", "--disable-gpu"]
        )
        opened = browser.new_page(viewport={"width": 1280, "height": 800})
        opened.goto(f"file://{path}", wait_until="commit", timeout=0)
        while (milliseconds := opened.evaluate(entry)) < 0:
            opened.wait_for_timeout(50)
        browser.close()
    return float(milliseconds) / 1000


def main() -> None:
    """Print a row per shape, and write them as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=TEXTS)
    parser.add_argument("--shapes", default=",".join(f"{w}x{c}" for w, c in SHAPES))
    parser.add_argument("--paint", action="store_true", help="also open it in $CHROMIUM")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for shape in options.shapes.split(","):
        length, classes = map(int, shape.split("x"))
        result = audit(options.texts, length, classes)
        page(result)  # what is loaded once is not counted
        text, seconds, peak = timed(partial(page, result), repeat=3, clock=time.process_time)
        packed = pack_texts(result.tables, result.classes, [])
        rows.append(
            {
                "texts": options.texts,
                "words": length,
                "classes": classes,
                "page_mb": len(text.encode()) / 1e6,
                "read_outs_mb": sum(map(len, packed.read_outs)) / 1e6,
                "maps_mb": sum(map(len, packed.blocks)) / 1e6,
                "seconds": seconds,
                "peak_mb": peak,
                **({"first_paint": first_paint(text)} if options.paint else {}),
            }
        )
        print(rows[-1], flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
