"""The smallest change where the read-out is not linear: upper bounds, by line searches on the model."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.counterfactual.row_weights import permuted, uniform
from heedmap.counterfactual.smallest_change import largest_divergence
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import BACKWARD
from heedmap.experiments.methods.adversary_search import SEARCH_SHARE
from heedmap.measures import jensen_shannon, total_variation
from heedmap.models.layered import Layered
from heedmap.models.trace import Model, Trace
from heedmap.settings.models import SLOW

SHUFFLES = 2  # searched beside the model's own weights
PATHS = 6
GRID, HALVINGS = (
    8,
    5,
)  # points on each path, then steps of bisection before the first that changes the class


def passes_per_text() -> float:
    """Return how often the logits of a text are computed from weights."""
    return (1 + SHUFFLES) * (PATHS * (GRID + HALVINGS) + BACKWARD)


def search_all(context: AuditContext) -> dict[str, np.ndarray]:
    """Return the columns for the texts that the adversary is searched for; NaN for the others.

    `least_tvd` and `least_jsd` are the smallest distances of the heat map found on any of PATHS paths: the
    truth is no larger. The same search starts from shuffled weights. `changeable` is 1 where a change was
    found, else NaN.
    """
    settings, model = context.settings, context.model
    slow = isinstance(model, Layered) and model.map_on_trial().view in SLOW
    names = ("least_tvd", "least_jsd")
    columns = {
        name: np.full(len(context.split), np.nan)
        for name in (*names, *(f"shuffled_{n}" for n in names), "shuffled_flipped", "own_maximum")
    }
    sample = context.sample("adversary", 0 if slow else settings.search_instances)
    for batch in context.batches_of(sample, shares=SEARCH_SHARE):
        trace = model.trace(batch)
        rows = batch.rows.tolist()
        rngs = context.generators("bending", batch.rows)
        shuffles = torch.cat(list(permuted(trace.attention, trace.support, SHUFFLES + 2, rngs)))
        targets, bases = shuffles[:2], shuffles[2:]
        from_map = nearest_met(model, trace, trace.attention, trace.predicted, targets)
        with torch.no_grad():
            predicted = model.predict(trace, bases).argmax(-1)
        from_shuffles = [
            nearest_met(model, trace, base, base_predicted, targets)
            for base, base_predicted in zip(bases, predicted, strict=True)
        ]
        flipped = (predicted != trace.predicted).double().mean(0)
        columns_of_batch = {
            **dict(zip(names, from_map, strict=True)),
            **{
                f"shuffled_{name}": torch.stack([distances[i] for distances in from_shuffles]).mean(
                    0
                )
                for i, name in enumerate(names)
            },
            "shuffled_flipped": flipped,
            "own_maximum": largest_divergence(trace.heatmap, trace.mask),
        }
        for name, values in columns_of_batch.items():
            columns[name][rows] = values.double().numpy(force=True)
    finite = {name: np.where(np.isfinite(x), x, np.nan) for name, x in columns.items()}
    return {**finite, "changeable": np.where(np.isnan(finite["least_tvd"]), np.nan, 1.0)}


def nearest_met(
    model: Model,
    trace: Trace,
    base: Float[Tensor, "B K P"],
    predicted: Int[Tensor, " B"],
    targets: Float[Tensor, "M B K P"],
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Return the least TVD and JSD of the heat map from that of `base` at which another class is predicted.

    Paths: straight to uniform weights, to each target, to rows whose mass is on one position (the one that
    the gradient of the rival's lead names per row, and the one best for all rows), and mass moved there from
    the positions of the smallest gradient first. The first change on each path is bracketed by a grid and
    bisection. ∞ where none changes the class.
    """
    slope = _slope(model, trace, base, predicted)
    best = slope.masked_fill(~trace.support, -torch.inf).argmax(-1, keepdim=True)
    together = slope.masked_fill(~trace.support, 0.0).sum(1, keepdim=True)
    common = together.masked_fill(~trace.support, -torch.inf).argmax(-1, keepdim=True)
    mass = base.sum(-1, keepdim=True)
    straight = [uniform(base, trace.support), *targets]
    straight += [torch.zeros_like(base).scatter(-1, position, mass) for position in (best, common)]
    order = slope.masked_fill(~trace.support, torch.inf).argsort(dim=-1, stable=True)
    ends = torch.stack(straight)

    def at(share: Float[Tensor, "paths B"]) -> Float[Tensor, "paths B K P"]:
        fraction = share[:-1, :, None, None]
        return torch.cat(
            [base + fraction * (ends - base), _moved(base, order, best, share[-1])[None]]
        )

    def changed(share: Float[Tensor, "paths B"]) -> Bool[Tensor, "paths B"]:
        with torch.no_grad():
            return model.predict(trace, at(share)).argmax(-1) != predicted

    changed_share = torch.full((len(ends) + 1, len(base)), torch.inf, device=base.device)
    for step in reversed(range(1, GRID + 1)):
        share = torch.full_like(changed_share, step / GRID)
        changed_share = torch.where(changed(share), share, changed_share)
    ever = changed_share.isfinite()
    changed_share = torch.where(ever, changed_share, 1.0)
    unchanged_share = changed_share - 1 / GRID
    for _ in range(HALVINGS):
        middle = 0.5 * (unchanged_share + changed_share)
        over = changed(middle)
        changed_share, unchanged_share = (
            torch.where(over, middle, changed_share),
            torch.where(over, unchanged_share, middle),
        )
    with torch.no_grad():
        base_heatmap = model.to_heatmap(trace, base[None]).double()
        heat = model.to_heatmap(trace, at(changed_share)).double()
    base_heatmap = base_heatmap.expand_as(heat)
    never = (~ever).to(heat.device)
    tvd, jsd = (
        distance(heat, base_heatmap).masked_fill(never, torch.inf).amin(0)
        for distance in (total_variation, jensen_shannon)
    )
    return tvd, jsd


def _slope(
    model: Model, trace: Trace, base: Float[Tensor, "B K P"], predicted: Int[Tensor, " B"]
) -> Float[Tensor, "B K P"]:
    """Return the gradient of the best rival's lead by the weights."""
    weights = base.detach().clone().requires_grad_()
    logits = model.predict(trace, weights[None])[0]
    answer = predicted.unsqueeze(1)
    rival = logits.scatter(1, answer, -torch.inf).amax(1)
    (slope,) = torch.autograd.grad((rival - logits.gather(1, answer)[:, 0]).sum(), weights)
    return slope


def _moved(
    base: Float[Tensor, "B K P"],
    order: Int[Tensor, "B K P"],
    best: Int[Tensor, "B K 1"],
    share: Float[Tensor, " B"],
) -> Float[Tensor, "B K P"]:
    """Move a share of each row's mass to `best`, from the first positions of the order."""
    sorted_mass = base.gather(-1, order)
    mass_before = sorted_mass.cumsum(-1) - sorted_mass
    mass_to_move = share[:, None, None] * base.sum(-1, keepdim=True)
    moved_mass = torch.minimum((mass_to_move - mass_before).clamp(min=0.0), sorted_mass)
    moved_weights = torch.zeros_like(base).scatter(-1, order, sorted_mass - moved_mass)
    return moved_weights.scatter_add(-1, best, moved_mass.sum(-1, keepdim=True))
