"""What does the answer lose without a ranking's first words, and with them alone? (DeYoung et al. 2020)

ERASER's comprehensiveness is p(ŷ|x) − p(ŷ|x without the first words), sufficiency p(ŷ|x) − p(ŷ|these alone),
of the predicted class ŷ: the model reads the shorter text again, encoder and all. Their analogues at the
attention leave the states as they are, and erase weights.
"""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.counterfactual.weight_erasure import split_along
from heedmap.data.eraser_predictions import BINS, LOSSES
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.erasure_predictions import imposed, is_closed
from heedmap.experiments.methods.rankings import (
    RANKINGS,
    SHUFFLES,
    Scores,
    add_read_out,
    scores_of,
    shuffles_of,
)
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import SampledColumn, text_table
from heedmap.importance.deletions import reread_kept
from heedmap.importance.rationale_agreement import number_of, order_of
from heedmap.models.trace import Trace
from heedmap.terminal.progress import portion

TEXTS = 100  # of the sample of integrated gradients: each is read again up to 120 times
LISTED = ", ".join(map(str, BINS))


COLUMNS = Columns(
    f"One row per text. Null for texts of one token, those not sampled (at most {TEXTS} are), and where the "
    "ranking is undefined.",
    {
        **shared("row", "predicted"),
        "{loss}_{ranking}": (
            "−1 to 1",
            "what the predicted class's probability loses when the model reads the text again {loss}, by "
            f"{{ranking}}: the mean over the first {LISTED} % (AOPC)",
        ),
        "{loss}_weights_{ranking}": (
            "−1 to 1",
            "the same where the states stay and weights are erased: decoded {loss}, by {ranking}",
        ),
        "bins_{loss}_{ranking}": (
            f"list of {len(BINS)}, −1 to 1",
            f"the parts of `{{loss}}_{{ranking}}`: by the first {LISTED} %, rounded up to whole tokens",
        ),
    },
    loss={
        "comprehensiveness": "without the first tokens",
        "sufficiency": "with the first tokens alone",
    },
    ranking={**RANKINGS, "random": f"a random order (mean of {SHUFFLES})"},
)


def eraser(context: AuditContext) -> pa.Table:
    """Return comprehensiveness and sufficiency of each ranking, of at most TEXTS of the texts.

    A bin's number of tokens is rounded up, so that at least one is taken and, of two or more, one stays.
    """
    settings = context.settings
    sample = context.sample("integrated_gradients", settings.integrated_gradients_instances)
    rows = sample[np.sort(context.generator("eraser").permutation(len(sample))[:TEXTS])]
    lengths = np.array([len(text) for text in context.texts], dtype=np.int64)
    rows = rows[lengths[rows] > 1]
    names = (*RANKINGS, "random")
    columns: dict[str, dict[int, float]] = {
        f"{measure}{suffix}_{name}": {}
        for measure in LOSSES
        for suffix in ("", "_weights")
        for name in names
    }
    bins: dict[str, dict[int, object]] = {
        f"bins_{measure}_{name}": {} for measure in LOSSES for name in names
    }
    scores_by_row = scores_of(context, rows=rows)
    for batch in context.batches_of(rows):
        trace = context.model.trace(batch)
        add_read_out(context, trace, scores_by_row)
        places, rankings = [], []
        for i, row in enumerate(trace.rows.tolist()):
            random = shuffles_of(context, "eraser", row, int(lengths[row]))
            scores = [*scores_by_row[row].items(), *(("random", values) for values in random)]
            places += [(i, name) for name, _ in scores]
            rankings.append([values for _, values in scores])
        with portion(0.6):
            losses_reread = _read_again(context, trace, rankings)
        with portion(0.4):
            weighed = _weighed(context, trace, rankings)
        of_row: dict[tuple[int, str], list[int]] = {place: [] for place in places}
        for number, place in enumerate(places):
            of_row[place].append(number)
        for (i, name), numbers in of_row.items():
            row = int(trace.rows[i])
            for m, measure in enumerate(LOSSES):
                curve = losses_reread[numbers, :, m].mean(0)
                bins[f"bins_{measure}_{name}"][row] = curve
                columns[f"{measure}_{name}"][row] = curve.mean()
                columns[f"{measure}_weights_{name}"][row] = weighed[numbers, :, m].mean()
    return text_table(
        context,
        {
            **{name: SampledColumn(by_row) for name, by_row in columns.items()},
            **{
                name: SampledColumn(by_row, pa.list_(pa.float64())) for name, by_row in bins.items()
            },
        },
        copied=["predicted"],
    )


def counts_of(size: int) -> list[int]:
    """Return how many tokens of a text are in each bin."""
    return [number_of(Fraction(percent, 100), size) for percent in BINS]


def kept_by(scores: Scores, counts: list[int]) -> np.ndarray:
    """Return masks (2 Q, n): without the first tokens of a ranking, for each count, and with these alone."""
    place = order_of(scores).argsort(kind="stable")
    without = place >= np.array(counts)[:, None]
    return np.concatenate([without, ~without])


def _read_again(context: AuditContext, trace: Trace, rankings: list[list[Scores]]) -> np.ndarray:
    """Return the losses of p(ŷ) (all rankings of all texts, bins, measures) of texts that are read again."""
    texts = [context.texts[row] for row in trace.rows.tolist()]
    masks = [
        np.concatenate([kept_by(scores, counts_of(len(scores))) for scores in text_scores])
        for text_scores in rankings
    ]
    losses = []
    for i, logits in enumerate(reread_kept(context.model, texts, masks)):
        predicted = int(trace.predicted[i])
        probability = trace.logits[i].double().softmax(-1)[predicted].item()
        probabilities = logits.softmax(-1)[:, predicted].numpy()
        losses.append(probability - probabilities.reshape(-1, 2, len(BINS)).transpose(0, 2, 1))
    return np.concatenate(losses)


def _weighed(context: AuditContext, trace: Trace, rankings: list[list[Scores]]) -> np.ndarray:
    """Return the same where the states stay and the weights of what is left out are erased."""
    longest = max(len(text_scores) for text_scores in rankings)
    ranked = torch.zeros(longest, *trace.mask.shape, dtype=torch.float64)
    for i, text_scores in enumerate(rankings):
        for r, scores in enumerate(text_scores):
            ranked[r, i, trace.mask[i].cpu()] = torch.from_numpy(scores)
    counts = torch.tensor([counts_of(int(n)) for n in trace.mask.sum(-1)])
    parts = [
        torch.stack(_split(context, trace, ranking, counts.to(trace.mask.device)), -2)
        for ranking in ranked.to(trace.mask.device)
    ]  # each (B, Q, 2, C)
    answer = trace.predicted.reshape(1, -1, 1, 1, 1)
    probability = trace.logits.double().softmax(-1).gather(1, trace.predicted.unsqueeze(1))
    probabilities = torch.stack(parts).softmax(-1)
    probabilities = probabilities.gather(-1, answer.expand(*probabilities.shape[:-1], 1)).squeeze(
        -1
    )
    losses = (probability[:, :, None] - probabilities).numpy(force=True)  # (R, B, Q, 2)
    return np.concatenate([losses[: len(text_scores), i] for i, text_scores in enumerate(rankings)])


def _split(
    context: AuditContext, trace: Trace, ranking: Float[Tensor, "B T"], counts: Int[Tensor, "B Q"]
) -> tuple[Float[Tensor, "B Q C"], Float[Tensor, "B Q C"]]:
    """Return the logits without the weights of a ranking's first tokens, and with these alone."""
    renormalise = context.settings.renormalise
    if is_closed(trace, renormalise):
        weights, relevance, bias = linear(trace)
        return split_along(ranking, weights, relevance, bias, trace.mask, counts)
    order = ranking.masked_fill(~trace.mask, -torch.inf)
    place = order.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    later = place >= counts.T.unsqueeze(-1)  # (Q, B, T)
    logits = imposed(
        context.model, trace, torch.cat([later, ~later & trace.mask]), renormalise
    ).transpose(0, 1)
    return logits[:, : counts.shape[1]], logits[:, counts.shape[1] :]


def _findings(results: Results) -> list[Finding]:
    texts = {
        "comprehensiveness": (
            "without the first words",
            "What does the answer lose without the words that the map puts first?",
            "the probability lost; more is better",
        ),
        "sufficiency": (
            "the first words alone",
            "What does the answer lose with the words alone that the map puts first?",
            "the probability lost; less is better, below 0 it gains",
        ),
    }
    findings = []
    for measure, (topic, question, meaning) in texts.items():
        values = results.column("eraser", f"{measure}_attention")
        is_defined = np.isfinite(values)
        random = mean(results.column("eraser", f"{measure}_random")[is_defined])
        weights, chance = (
            mean(results.column("eraser", f"{measure}_weights_{name}")[is_defined])
            for name in ("attention", "random")
        )
        by_ranking = ", ".join(
            f"{words} {mean(results.column('eraser', f'{measure}_{name}')):z.2f}"
            for name, words in RANKINGS.items()
            if name != "attention"
        )
        findings.append(
            results.finding(
                measure,
                "change",
                values,
                {
                    "one token: nothing would be left": results.short,
                    "not sampled": ~is_defined,
                },
                topic=topic,
                question=question,
                measure=f"mean {measure} of the map, over the first 1, 5, 10, 20 and 50 % of the words",
                meaning=meaning,
                summary=(
                    f"at random {random:z.2f}, {by_ranking}; of the weights alone, the states unchanged, "
                    f"{weights:z.2f}, at random {chance:z.2f}"
                ).replace("-0.", "−0."),
            )
        )
    return findings


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [(measure, row["eraser"][f"{measure}_attention"]) for measure in LOSSES]


def _cost(probe: CostProbe) -> float:
    """Return seconds: what is left out and what is kept are together one text, per ranking and bin."""
    rankings = len(RANKINGS) + SHUFFLES
    count = min(TEXTS, probe.context.settings.integrated_gradients_instances)
    seconds = probe.reading(float(rankings * len(BINS)), count)
    if not is_closed(probe.trace, probe.context.settings.renormalise):
        texts = len(probe.context.lengths) * probe.sampled(count)
        seconds += texts * probe.again * 2 * rankings * len(BINS)
    return seconds


EXPERIMENT = Experiment(
    "eraser",
    eraser,
    columns=COLUMNS,
    needs=("reading", "gradients", "classes"),
    place=66,
    findings=_findings,
    figures=("heedmap.report.eraser_figures:rankings",),
    facts=_facts,
    cost=_cost,
)
