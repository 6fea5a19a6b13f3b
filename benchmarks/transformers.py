"""A transformer on trial against the obvious ways: the same model, the same texts, one run.

    python -m benchmarks.transformers --model MODEL --data SST --json transformers.json

* single-layer interventions: S other weightings of one layer, against the whole model again for each;
* leave-one-out in length-sorted full batches, against Captum's FeatureAblation, one and 32 perturbations
  a call, with the share of the machine's matrix-product rate;
* bfloat16 against float32: time and error;
* peak memory at 512 tokens, by the batch knob (each in a process of its own).

`agree` is the largest difference in logits (or probability) between the two sides.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from captum.attr import FeatureAblation

from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.huggingface.interventions import Imposed
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.deletions import reread_without_each
from heedmap.models.kernels import product
from heedmap.runs.open import open_model
from heedmap.settings.audit import AuditSettings

COPIES = 4  # other weightings of each text


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Seconds of the processor, on one thread: what others do on the machine is not counted."""
    start = time.process_time()
    found = work(*arguments)
    return found, time.process_time() - start


def opened(options: argparse.Namespace, **settings: Any) -> TransformerClassifier:
    run = open_model(options.model, options.data, tokenizer="spaces", **settings)
    assert isinstance(run.model, TransformerClassifier)
    texts = run.corpus.splits["test"].tokens
    rng = np.random.default_rng(0)
    options.texts = [texts[i] for i in sorted(rng.permutation(len(texts))[: options.instances])]
    return run.model


def evidence_of(model: TransformerClassifier, texts: list[list[str]]) -> AuditContext:
    from heedmap.data.corpus import Split

    split = Split([str(i) for i in range(len(texts))], texts, np.zeros(len(texts), dtype=np.int64))
    return AuditContext(model, split, AuditSettings(), registered())


def interventions(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for view in ("row", "received"):
        for layer in range(options.layers):
            model = opened(options, layer=layer, view=view)
            evidence = evidence_of(model, options.texts)
            generator = torch.Generator().manual_seed(0)
            ours = naive = worst = 0.0
            for batch in evidence.batches_of(range(len(options.texts)), shares=2):
                trace = model.trace(batch)
                noise = torch.rand(COPIES, *trace.attention.shape, generator=generator)
                other = noise * trace.support
                other /= other.sum(-1, keepdim=True).clamp(min=1e-9)
                found, seconds = timed(model.predict, trace, other)
                ours += seconds
                expected, seconds = timed(again, model, batch, other)
                naive += seconds
                worst = max(worst, float((found - expected).abs().max()))
            rows.append(
                {
                    "step": f"{view}, layer {layer}",
                    "way": model.rerun.way,
                    "ours_s": ours,
                    "plain_s": naive,
                    "ratio": naive / ours,
                    "agree": worst,
                }
            )
            print(rows[-1], flush=True)
    return rows


@torch.no_grad()
def again(model: TransformerClassifier, batch: Any, other: torch.Tensor) -> torch.Tensor:
    """The whole model once for every weighting."""
    inputs = model.inputs(batch)
    reads = model.read_rows(inputs) if model.one_row else None
    size = other.shape[-1]
    found = []
    for weights in other:
        shape = (model.heads, size) if model.one_row else (model.heads, size, size)
        visitor = Imposed(model.calls[model.layer], weights.reshape(-1, *shape), reads)
        with model.adapter.visiting(visitor):
            found.append(model.model(**inputs).logits)
    return torch.stack(found)


def leave_one_out(options: argparse.Namespace) -> list[dict[str, Any]]:
    model = opened(options)
    texts = options.texts
    ours, seconds = timed(reread_without_each, model, texts, "mask")
    positions = sum(len(t) * n for t, n in zip(texts, model.lengths(texts), strict=True))
    _, removing = timed(reread_without_each, model, texts)
    rows = [{"step": "leave-one-out, removing", "ours_s": removing}]
    mask = model.tokenizer.mask_token_id
    rate = machine_rate()
    for at_once in (1, 32):
        plain, slow = timed(all_ablated, model, texts, mask, at_once)
        same = [i for i, (_, single) in enumerate(plain) if single]
        worst = max(
            float((ours[i].softmax(-1) - plain[i][0]).abs().max())
            for i in same
            if len(texts[i]) > 1
        )
        rows.append(
            {
                "step": f"leave-one-out, masking, against FeatureAblation, {at_once} a call",
                "ours_s": seconds,
                "plain_s": slow,
                "ratio": slow / seconds,
                "agree": worst,
                "compared": len(same),
                "gflops": float(flops(model, texts) / seconds / 1e9),
                "machine_gflops": rate,
                "positions": int(positions),
            }
        )
        print(rows[-1], flush=True)
    return rows


def all_ablated(
    model: TransformerClassifier, texts: list[list[str]], mask: int, at_once: int
) -> list[tuple[torch.Tensor, bool]]:
    # The model as it is loaded multiplies by MKL.
    with torch.backends.mkldnn.flags(enabled=False):
        return [ablated(model, text, mask, at_once) for text in texts]


def ablated(
    model: TransformerClassifier, text: list[str], mask: int, at_once: int
) -> tuple[torch.Tensor, bool]:
    """Probabilities without each word, by Captum; and whether every word is one position."""
    batch = model.batch([text], [0])
    inputs = model.inputs(batch)
    words = batch.words
    size = len(text)
    features = torch.where(words < 0, size, words)

    @torch.inference_mode()
    def probabilities(ids: torch.Tensor) -> torch.Tensor:
        rest = {k: v.expand(len(ids), -1) for k, v in inputs.items() if k != "input_ids"}
        return model.model(input_ids=ids, **rest).logits.softmax(-1)

    baseline = torch.where(words < 0, batch.ids, mask)
    before = probabilities(batch.ids)
    found = []
    for c in range(before.shape[1]):  # Captum takes one target; the passes are those of one class
        if c > 0:
            found.append(1 - found[0] if before.shape[1] == 2 else found[0])
            continue
        change = FeatureAblation(lambda ids: probabilities(ids)[:, 0]).attribute(
            batch.ids, baselines=baseline, feature_mask=features, perturbations_per_eval=at_once
        )
        place = torch.zeros(size, dtype=torch.long)
        place[words[0][words[0] >= 0]] = (words[0] >= 0).nonzero()[:, 0]
        found.append(before[0, 0] - change[0, place])
    single = bool((torch.bincount(words[0][words[0] >= 0], minlength=size) == 1).all())
    return torch.stack(found, dim=1), single


def machine_rate(size: int = 1536, times: int = 20) -> float:
    """GFLOP/s of a large square product by the fastest library, in seconds of the processor."""
    a = torch.randn(size, size)
    product(a, a)
    _, seconds = timed(lambda: [product(a, a) for _ in range(times)])
    return 2 * size**3 * times / seconds / 1e9


def flops(model: TransformerClassifier, texts: list[list[str]]) -> float:
    """Of the matrix products that leave-one-out needs: blocks only."""
    config = model.model.config
    d, ff, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    total = 0.0
    for text, n in zip(texts, model.lengths(texts), strict=True):
        each = layers * (n * (8 * d * d + 4 * d * ff) + 4 * n * n * d)
        total += len(text) * each
    return total


def half(options: argparse.Namespace) -> list[dict[str, Any]]:
    found = {}
    for dtype in ("float32", "bfloat16"):
        model = opened(options, dtype=dtype)
        evidence = evidence_of(model, options.texts)
        traces, seconds = timed(lambda e: list(e.traces), evidence)
        found[dtype] = (traces, seconds)
    (one, slow), (two, fast) = found["float32"], found["bfloat16"]
    pairs = list(zip(one, two, strict=True))
    change = [(a.logits.softmax(-1) - b.logits.softmax(-1)).abs() for a, b in pairs]
    heat = [(a.heatmap - b.heatmap).abs() for a, b in pairs]
    flips = sum(int((a.predicted != b.predicted).sum()) for a, b in pairs)
    return [
        {
            "step": "bfloat16 against float32, traces",
            "ours_s": fast,
            "plain_s": slow,
            "ratio": slow / fast,
            "largest_change_of_probability": max(float(c.max()) for c in change),
            "mean_change_of_probability": float(torch.cat(change).mean()),
            "largest_change_of_heat": max(float(h.max()) for h in heat),
            "other_class": flips,
        }
    ]


def memory(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for tokens in (2048, 8192, 32768):
        command = [
            sys.executable, "-m", "benchmarks.transformers", "--model", options.model,
            "--data", options.data, "--peak", str(tokens),
        ]  # fmt: skip
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows.append(json.loads(told.splitlines()[-1]))
        print(rows[-1], flush=True)
    return rows


def peak(options: argparse.Namespace) -> None:
    """32 texts of 512 positions: trace, gradient, every heat map, facts of all heads, 4 shuffles."""
    options.instances = 1821
    model = opened(options, batch_tokens=options.peak)
    words = [word for text in options.texts for word in text]
    texts = []
    for i in range(32):
        text = words[i * 600 : i * 600 + 600]
        while model.lengths([text])[0] > 512:
            text = text[:-1]
        texts.append(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    evidence = evidence_of(model, texts)
    settings = AuditSettings(permutations=4, integrated_gradients_instances=2, scan_instances=8)
    evidence.settings = settings
    for name in ("instances", "gradient", "permutation", "heads"):
        evidence.table(name)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {"step": f"512 tokens, batches of {options.peak}", "peak_mb": after, "model_mb": before}
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--instances", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--json")
    parser.add_argument("--peak", type=int)
    parser.add_argument("--only", choices=["interventions", "leave_one_out", "half", "memory"])
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if options.peak:
        peak(options)
        return
    torch.set_num_threads(1)
    rows = []
    for step in (leave_one_out, interventions, half, memory):
        if options.only in (None, step.__name__):
            rows += step(options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"threads": torch.get_num_threads(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
