"""One model of texts: its audit's tables, its further trainings, and how alike the states of a text are."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.row_weights import permuted
from heedmap.data.corpus import Corpus
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.experiments.repeats import text_numbers
from heedmap.measures import conicity, jensen_shannon, mean_cosine
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.papers.kit.reproduction import Cell
from heedmap.papers.survey.settings import SurveySettings
from heedmap.retraining.base import base_of
from heedmap.retraining.trainer import Trainer
from heedmap.runs.audit_defaults import audit_defaults, audited_split
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.settings.retraining import RetrainSettings
from heedmap.terminal.progress import doing

SHUFFLES = 5
RANKINGS = ("random", "attention", "gradient", "product", "exact")
KEPT = {
    "instances": ("label", "predicted", "n_tokens"),
    "erasure": (
        "flip_top", "flip_random", "js_top", "js_random", "weight_top", "weight_random",
    ),
    "decision_flips": tuple(f"count_{ranking}" for ranking in RANKINGS),
}  # fmt: skip
RETRAINED = {
    "necessity": {name: name for name in ("learned", "uniform", "uniform_at_test")},
    "stability": {"seed_jsd": "jsd", "seed_jsd_chance": "shuffled_jsd"},
}


def text_rows(cell: Cell, checkpoints: Path, corpus: Corpus, settings: SurveySettings) -> pa.Table:
    """Train a model and return a row per test text; further trainings are kept among the checkpoints."""
    epochs: dict[str, Any] = {} if settings.epochs is None else {"epochs": settings.epochs}
    run = train(
        corpus,
        encoder=cell["encoder"],
        normaliser=cell["normaliser"],
        hidden_size=cell["size"],
        embedding_size=settings.embedding_size,
        seed=settings.seed,
        progress=False,
        **epochs,
    )
    model = run.model
    assert isinstance(model, AttentionClassifier)
    # Without the paper's search, which is slow and finds less than the bounds.
    options = {**audit_defaults(model, corpus.settings), "descent_steps": 0, "seed": settings.seed}
    # Bounds along the curve, for several ε, would take most of the time.
    audit_settings = AuditSettings.of(**{**options, "curve": (options["epsilon"],)})
    split = audited_split(corpus, audit_settings)
    retraining = None
    if cell["retrained"]:
        base = base_of(model, corpus, run.settings, split, checkpoints)
        retraining = Trainer(base, RetrainSettings(seeds=settings.seeds), workers=1)
    context = AuditContext(model, split, audit_settings, registered(), retraining=retraining)
    columns: dict[str, Any] = {name: [value] * len(split) for name, value in cell.columns.items()}
    for name, kept in KEPT.items():
        doing(name)
        table = context.table(name)
        # Of a model that is searched, there is no smallest set and no upper bound of some texts.
        columns |= {column: table[column] for column in kept if column in table.column_names}
    if retraining is not None:
        for name, renamed in RETRAINED.items():
            doing(name)
            columns |= {new: context.table(name)[old] for new, old in renamed.items()}
    doing("adversary")
    columns |= adversaries(context, settings.adversary_texts)
    columns["text"] = text_numbers(context.table("instances"))
    return pa.table({**columns, **distances(context), **likenesses(context, model)})


def adversaries(context: AuditContext, count: int) -> dict[str, Any]:
    """Return the adversary's divergence and its upper bound of a sample of the texts; NaN of the others."""
    rows = context.sample("survey adversary", count)
    sample = AuditContext(
        context.model, context.split.take(rows), context.settings, context.experiments
    )
    table = sample.table("adversary")
    columns = {}
    for name in ("jsd", "jsd_upper"):
        columns[name] = np.full(len(context.split), np.nan)
        columns[name][rows] = table[name].to_numpy(zero_copy_only=False)
    return columns


def farthest(attention: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
    """Return the divergence from the map that is farthest, whatever it predicts.

    The Jensen-Shannon divergence is convex in either argument, so that its maximum over a simplex is at a
    corner: all weight on one token, and that with the least weight of all.
    """
    place = attention.masked_fill(~mask, torch.inf).argmin(-1, keepdim=True)
    corner = torch.zeros_like(attention).scatter(-1, place, 1.0)
    return jensen_shannon(attention, corner)


@torch.no_grad()
def distances(context: AuditContext) -> dict[str, Any]:
    """Return per text how far a map can be at all, and how far shuffles of the weights are on average."""
    total = len(context.split)
    ceiling, shuffled = np.full(total, np.nan), np.full(total, np.nan)
    for trace in context.traces:
        rows, heatmap = trace.rows.numpy(force=True), trace.heatmap.double()
        ceiling[rows] = farthest(heatmap, trace.mask).numpy(force=True)
        rngs = context.generators("survey", trace.rows)
        blocks = permuted(trace.attention, trace.support, SHUFFLES, rngs)
        maps = torch.cat([context.model.to_heatmap(trace, block).double() for block in blocks])
        shuffled[rows] = jensen_shannon(heatmap.expand_as(maps), maps).mean(0).numpy(force=True)
        short = (trace.mask.sum(-1) < 2).numpy(force=True)
        for values in (ceiling, shuffled):
            values[rows[short]] = np.nan
    return {"farthest": ceiling, "shuffled": shuffled}


@torch.no_grad()
def likenesses(context: AuditContext, model: AttentionClassifier) -> dict[str, Any]:
    """Return per text how alike its states and its embeddings are, and states of any texts by chance.

    Chance: the states of all texts change places, so that each text has as many, of other texts.
    """
    total = len(context.split)
    columns = {
        f"{measure}_{of}": np.full(total, np.nan)
        for of in ("states", "embeddings", "states_chance", "embeddings_chance")
        for measure in ("cosine", "conicity")
    }
    vectors: dict[str, list[Tensor]] = {"states": [], "embeddings": []}
    masks, rows = [], []
    for batch in context.batches:
        embedded = model.embed(batch)
        vectors["states"].append(model.encode(embedded, batch).double().cpu())
        vectors["embeddings"].append(embedded[:, 1:-1].double().cpu())
        masks.append(batch.mask.cpu())
        rows.append(batch.rows.numpy(force=True))
    counts = [int(mask.sum()) for mask in masks]
    generator = context.torch_generator("survey states")
    order = torch.randperm(sum(counts), generator=generator)
    for of, parts in vectors.items():
        real = torch.cat([part[mask] for part, mask in zip(parts, masks, strict=True)])
        moved = torch.split(real[order], counts)
        for part, mask, numbers, mixed in zip(parts, masks, rows, moved, strict=True):
            by_chance = torch.zeros_like(part)
            by_chance[mask] = mixed
            for name, states in ((of, part), (f"{of}_chance", by_chance)):
                columns[f"cosine_{name}"][numbers] = mean_cosine(states, mask).numpy()
                columns[f"conicity_{name}"][numbers] = conicity(states, mask).numpy()
    return columns
