"""What are attention's tau and the adversary's freedom if the weights are shuffled within each text?

    heedmap train --data SST --dataset sst --encoder average --vectors GLOVE --out runs/sst
    python -m benchmarks.chance runs/sst ...        # trained runs of single texts; the table of docs/results

The whole test split, one random order of each text's weights. Everything that depends on the weights is
computed again: the prediction, the gradient with the weights held fixed, leave-one-out (only of `average`,
whose states do not depend on the other words), and of two classes the exact adversary at ε = .01.
"""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

import heedmap as hm
from heedmap.counterfactual import exact
from heedmap.data.batches import Batch, sorted_batches
from heedmap.experiments.methods.kendall import kendall_tau
from heedmap.importance.gradients import gradient_importance
from heedmap.measures import LN2, change_in_prediction
from heedmap.models.trace import Trace

TOKENS = 8192
COLUMNS = ("gradient", "leave-one-out", "adversary")


def shuffled(trace: Trace, model: Any, rng: np.random.Generator) -> Trace:
    """Return the trace under each text's own weights in a random order."""
    weights = trace.attention.clone()
    for row, mask in zip(weights[:, 0], trace.mask, strict=True):
        row[mask] = row[mask][torch.from_numpy(rng.permutation(int(mask.sum())))]
    logits = model.predict(trace, weights.unsqueeze(0)).squeeze(0)
    return replace(trace, attention=weights, heatmap=weights[:, 0], logits=logits)


def measured(model: Any, batch: Batch, trace: Trace) -> Tensor:
    """Return tau with the gradient, tau with leave-one-out, and the adversary's JSD / ln 2, per text."""
    assert trace.readout is not None
    weights, relevance = trace.attention[:, 0], trace.readout.relevance[:, 0]
    share = weights.double().unsqueeze(-1)
    parts = share * relevance.double()
    without = (parts.sum(1, keepdim=True) - parts) / (1 - share) + trace.readout.bias
    before = trace.logits.double().unsqueeze(1).expand_as(without)
    values = [
        weights,
        gradient_importance(model, batch, trace),
        change_in_prediction(before, without).float(),
    ]
    tau = kendall_tau(torch.stack(values, dim=1), trace.mask).tau[:, 0, 1:]
    best = torch.full((len(tau), 1), torch.nan, dtype=torch.float64)
    if relevance.shape[-1] == 2:
        found = exact.adversary(weights, relevance, trace.readout.bias, trace.mask, 0.01)
        best = found.jsd.double().unsqueeze(1) / LN2
    if model.settings.encoder != "average":
        tau[:, 1] = torch.nan
    return torch.cat([tau, best], dim=1)


def compared(folder: str) -> tuple[Tensor, Tensor]:
    """Return the means over a run's test texts, by its own weights and by shuffled ones."""
    run = hm.open_run(folder)
    texts, rng = run.encoded(run.corpus.splits["test"]), np.random.default_rng(0)
    own, by_chance = [], []
    for rows in sorted_batches(texts.lengths, TOKENS):
        batch = texts.batch(rows)
        trace = run.model.trace(batch)
        own.append(measured(run.model, batch, trace))
        by_chance.append(measured(run.model, batch, shuffled(trace, run.model, rng)))
    return torch.cat(own).nanmean(0), torch.cat(by_chance).nanmean(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    print("| run | " + " | ".join(f"{name}, own | shuffled" for name in COLUMNS) + " |")
    print("| --- |" + " ---: |" * 2 * len(COLUMNS))
    for folder in parser.parse_args().runs:
        own, by_chance = compared(folder)
        pairs = zip(own, by_chance, strict=True)
        cells = ["–" if value.isnan() else f"{value:.3f}" for pair in pairs for value in pair]
        print(f"| {folder} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
