"""Which measure finds the deciding items of bags? Trained models on xMIL's toys and on bags of digits.

    python -m benchmarks.xmil --seeds 10 --out docs/results/bags.md     # makes that page, in some ten minutes

Of each bag and class c an item has the evidence 1 if it speaks for c, −1 if it speaks against it, else 0.
AUPRC-2 is the mean of the average precisions of s for the items with 1, and of −s for those with −1, where
there are some (Hense et al. 2024, section 4.1 and the released code), then over bags and classes. The
log-odds of c are followed: by the gradient times the input (through the attention), without each item, and
of each item alone.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import heedmap as hm
from heedmap.calibration.planted_bags import digit_of
from heedmap.data.corpus import Split
from heedmap.data.toy_bags import adjacent_pairs
from heedmap.experiments.seed_intervals import bounded_interval
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.importance.rationale_agreement import average_precision, average_precision_by_chance
from heedmap.measures import log_odds
from heedmap.models.attention_classifier import TextClassifier

Numbers = NDArray[np.float64]
# Given the digits of a bag and a class by its name, the evidence of each item.
Evidence = Callable[[NDArray[np.int64], str], NDArray[np.int64]]

METHODS = ("attention", "gradient × input", "leave-one-out", "single item")
TITLES = {"four_bags": "4-Bags", "pos_neg": "Pos-Neg", "adjacent_pairs": "Adjacent Pairs",
          "digit-bags": "Digit bags"}  # fmt: skip
# AttnMIL in Table 1 of Hense et al. (2024): AUPRC-2, mean and standard deviation over 30 repetitions.
_COLUMNS = ("chance", *METHODS[:2], "single item", "integrated gradients", "xMIL-LRP")
PUBLISHED: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "four_bags": dict(zip(_COLUMNS, (
        (0.31, 0.00), (0.53, 0.00), (0.72, 0.08), (0.87, 0.02), (0.88, 0.01), (0.91, 0.01)), strict=True)),
    "pos_neg": dict(zip(_COLUMNS, (
        (0.42, 0.00), (0.45, 0.00), (0.72, 0.14), (0.89, 0.00), (0.93, 0.00), (0.91, 0.01)), strict=True)),
    "adjacent_pairs": dict(zip(_COLUMNS, (
        (0.54, 0.00), (0.61, 0.01), (0.63, 0.05), (0.73, 0.06), (0.75, 0.03), (0.77, 0.04)), strict=True)),
    "digit-bags": {},
}  # fmt: skip
PUBLISHED_AUROC = {"four_bags": "1.00 ± 0.00", "pos_neg": "0.97 ± 0.00",
                   "adjacent_pairs": "0.88 ± 0.08"}  # fmt: skip
EPOCHS, TESTED, ROUNDED = (
    60,
    200,
    6,
)  # of a training, at most; test bags; digits that tell scores apart


def _four_bags(digits: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    eight, nine = {"0": (-1, -1), "1": (1, -1), "2": (-1, 1), "3": (1, 1)}[name]
    return np.where(digits == 8, eight, np.where(digits == 9, nine, 0))


def _pos_neg(digits: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    sign = 1 if name == "1" else -1
    return np.where(
        np.isin(digits, (4, 6, 8)), sign, np.where(np.isin(digits, (5, 7, 9)), -sign, 0)
    )


def _adjacent_pairs(digits: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    return np.where(adjacent_pairs(digits)[1], 1 if name == "1" else -1, 0)


def _digit_bags(digits: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    return np.where(digits == 9, 1 if name == "nine" else -1, 0)


EVIDENCE: Mapping[str, Evidence] = {
    "four_bags": _four_bags,
    "pos_neg": _pos_neg,
    "adjacent_pairs": _adjacent_pairs,
    "digit-bags": _digit_bags,
}


def auprc_2(evidence: NDArray[np.int64], scores: Numbers) -> float:
    """Return AUPRC-2 of one bag and class; NaN where no item has evidence, or all have the same."""
    return _mean_of_signs(
        evidence, lambda marks, sign: average_precision(marks, np.round(sign * scores, ROUNDED))
    )


def auprc_2_by_chance(evidence: NDArray[np.int64]) -> float:
    """Return what a random order is expected to reach."""
    return _mean_of_signs(evidence, lambda marks, sign: average_precision_by_chance(marks))


def _mean_of_signs(
    evidence: NDArray[np.int64], measure: Callable[[NDArray[np.bool_], int], float]
) -> float:
    values = [
        measure(evidence == sign, sign)
        for sign in (1, -1)
        if 0 < (evidence == sign).sum() < len(evidence)
    ]
    return float(np.mean(values)) if values else float("nan")


def scores_of(model: TextClassifier, split: Split, label: int) -> dict[str, list[Numbers]]:
    """Return what each method says of the items of each bag, for one class."""
    bags = split.tokens
    batch = model.batch(split.texts, range(len(split)))
    labels = torch.full((len(split),), label)
    embedded = model.embed(batch).detach().requires_grad_()
    followed = log_odds(model.logits_from(embedded, batch), labels)
    (gradient,) = torch.autograd.grad(followed.sum(), embedded)
    without = logits_without_each(model, batch, split.texts)
    each = [[item] for bag in bags for item in bag]
    alone = log_odds(
        model.logits(model.batch(each, range(len(each)))), torch.full((len(each),), label)
    )
    losses = followed.detach()[:, None] - log_odds(
        without.flatten(0, 1), labels.repeat_interleave(without.shape[1])
    ).view(without.shape[:2])
    ends = np.cumsum([len(bag) for bag in bags])[:-1]
    padded = {
        "attention": model.trace(batch).heatmap,
        "gradient × input": model.on_tokens((gradient * embedded).sum(-1), batch).detach(),
        "leave-one-out": losses,
    }
    scores = {
        name: [row[: len(bag)] for row, bag in zip(values.double().numpy(), bags, strict=True)]
        for name, values in padded.items()
    }
    return {**scores, "single item": np.split(alone.double().numpy(), ends)}


def measured(name: str, seed: int, score: str) -> dict[str, float]:
    """Train a model and return the mean AUPRC-2 of each method over test bags and classes, and its skill."""
    from sklearn.metrics import roc_auc_score

    corpus = hm.load(name, progress=False)
    run = hm.train(corpus, encoder="mlp", score=score, seed=seed, epochs=EPOCHS, progress=False)
    model, split = run.model, corpus.splits["test"]
    assert isinstance(model, TextClassifier)
    by_method: dict[str, list[float]] = {method: [] for method in (*METHODS, "chance")}
    digits = [np.array([digit_of(item) for item in bag]) for bag in split.tokens]
    for label, class_name in enumerate(corpus.classes):
        evidence = [EVIDENCE[name](bag, class_name) for bag in digits]
        by_method["chance"] += [auprc_2_by_chance(e) for e in evidence]
        for method, scores in scores_of(model, split, label).items():
            by_method[method] += [auprc_2(e, s) for e, s in zip(evidence, scores, strict=True)]
    with torch.no_grad():
        probabilities = (
            model.logits(model.batch(split.texts, range(len(split)))).softmax(-1).double()
        )
    outputs = probabilities / probabilities.sum(-1, keepdim=True)
    skill = roc_auc_score(
        split.labels, outputs[:, 1] if len(corpus.classes) == 2 else outputs, multi_class="ovr"
    )
    accuracy = float((outputs.argmax(-1).numpy() == split.labels).mean())
    means = {method: float(np.nanmean(values)) for method, values in by_method.items()}
    return {**means, "AUROC": float(skill), "accuracy": accuracy}


def ordering(values: Mapping[str, float]) -> str:
    """Return the methods, the best first."""
    return " > ".join(sorted(values, key=lambda method: -values[method]))


def orderings(name: str, seeds: Sequence[Mapping[str, float]]) -> tuple[str, str]:
    """Return the published order of the methods that both have, and ours."""
    theirs = {method: PUBLISHED[name][method][0] for method in METHODS if method in PUBLISHED[name]}
    return ordering(theirs), ordering(
        {method: float(np.mean([s[method] for s in seeds])) for method in theirs}
    )


def shown(values: Sequence[float]) -> str:
    """Return a mean and its interval over seeds."""
    low, high = bounded_interval(values)
    return f"{np.mean(values):.3f} [{low:.3f}, {high:.3f}]"


def section(name: str, seeds: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the lines of the page on one corpus."""
    published = PUBLISHED[name]
    rows = [
        f"| {method} | {shown([s[method] for s in seeds]) if method in seeds[0] else '–'} "
        f"| {'{:.2f} ± {:.2f}'.format(*published[method]) if method in published else '–'} |"
        for method in (*METHODS, "integrated gradients", "xMIL-LRP", "chance")
        if method in seeds[0] or method in published
    ]
    ours = {method: float(np.mean([s[method] for s in seeds])) for method in METHODS}
    lines = [
        f"## {TITLES[name]} (`{name}`)",
        "",
        f"AUROC of our models on the test bags {shown([s['AUROC'] for s in seeds])}"
        + (f" (published {PUBLISHED_AUROC[name]})" if published else "")
        + f", accuracy {shown([s['accuracy'] for s in seeds])}.",
        "",
        "| method | ours | published |",
        "|---|---:|---:|",
        *rows,
        "",
        f"Ours: {ordering(ours)}.",
    ]
    if published:
        theirs, shared = orderings(name, seeds)
        said = "the same as ours" if shared == theirs else f"ours of these: {shared}"
        lines += ["", f"Published: {theirs}; {said}."]
    return [*lines, ""]


HEAD = """# xMIL's toys, and bags of digits

Which measure finds the items that the label of a bag rests on? Here are four, on [bags whose deciding items
are known](../bags.md#bags-whose-deciding-items-are-known), beside the published table of xMIL (Hense et al.
2024, *xMIL: Insightful Explanations for Multiple Instance Learning in Histopathology*, NeurIPS 37, [arXiv
2406.04280](https://arxiv.org/abs/2406.04280): Table 1, the columns AttnMIL).

```sh
python -m benchmarks.xmil --seeds {seeds} --score {score} --out docs/results/bags.md
```

Each corpus has {seeds} trainings (mlp encoder, {score} score, {epochs} epochs at most) and {tested} test
bags. Ours are means and Student's 95 % intervals over the seeds, the published ones means ± standard
deviations over 30 repetitions.

* **AUPRC-2.** Of a class c an item speaks for it (1), against it (−1) or neither (0). The number is the
  mean of two average precisions: that of the scores s for the items with 1, and that of −s for those with
  −1, where there are some; then over bags and classes. *Chance* is a random order of the items of the same
  bags. The ceiling is 1, which the evidence itself reaches.
* **The methods** follow the log-odds of c. Gradient × input has its sign, and goes through the attention.
  Leave-one-out is what they lose without the item. The single item's are those of a bag with that item
  alone. Attention has no sign and is the same for all classes.
* **Unlike the paper**: one-hot vectors in place of MNIST's pictures behind a ResNet18; 800 bags to learn
  from, where the authors' script has 2000; bags that are balanced by class. In Pos-Neg the paper's text
  counts different digits, as ours do, and the released code counts items. Integrated gradients and xMIL-LRP
  were not run. Leave-one-out is not in their table, and digit bags are not in their paper.
"""


def page(results: Mapping[str, Sequence[Mapping[str, float]]], score: str) -> str:
    """Return the whole page."""
    seeds = len(next(iter(results.values())))
    head = HEAD.format(seeds=seeds, score=score, epochs=EPOCHS, tested=TESTED)
    sections = [line for name, of_seeds in results.items() for line in section(name, of_seeds)]
    return "\n".join([head, *_said(results), *sections])


def _said(results: Mapping[str, Sequence[Mapping[str, float]]]) -> list[str]:
    """Return what the numbers say, worked out of them."""
    lines = ["**What it says.**", ""]
    for name, seeds in results.items():
        gaps = {
            method: [s[method] - s["attention"] for s in seeds]
            for method in METHODS
            if method != "attention"
        }
        better = [method for method, gap in gaps.items() if bounded_interval(gap)[0] > 0]
        worse = [method for method, gap in gaps.items() if bounded_interval(gap)[1] < 0]
        above = [s["attention"] - s["chance"] for s in seeds]
        parts = [f"attention is {shown(above)} above chance"]
        if better:
            parts.append(f"better: {', '.join(better)}")
        if worse:
            parts.append(f"worse: {', '.join(worse)}")
        lines.append(f"* *{TITLES[name]}*: {'; '.join(parts)}.")
    compared = [name for name in results if PUBLISHED[name]]
    same = [TITLES[name] for name in compared if len({*orderings(name, results[name])}) == 1]
    lines.append(
        f"* *The order of the three methods that both have* is the published one on {len(same)} of the "
        f"{len(compared)} toys" + (f": {', '.join(same)}." if same else ".")
    )
    said = "*Better* and *worse*: the interval of the difference from attention over the seeds leaves 0 out."
    return [*lines, "", said, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--score", default="gated")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = {
        name: [measured(name, seed, options.score) for seed in range(options.seeds)]
        for name in TITLES
    }
    text = page(results, options.score)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
