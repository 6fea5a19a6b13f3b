"""Choose the instances that the page shows by rule: the clearest cases for and against the map."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.text_names import text_name
from heedmap.experiments.pooling import TEXT
from heedmap.experiments.rounding import number
from heedmap.experiments.scales import scale_of
from heedmap.experiments.text_tables import answer_probabilities
from heedmap.measures import LN2
from heedmap.nouns import Nouns
from heedmap.report.wording import column, shortened

FEWEST = 3  # shown even if no rule applies

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Example:
    """A row of the tables, and why it is shown."""

    row: int
    title: str
    reason: str


def reworded(example: Example, nouns: Nouns, names: Sequence[str]) -> Example:
    """Return an example with these nouns for texts and words; `names` are those of classes, which stay."""
    title, reason = (nouns.reword(part, names) for part in (example.title, example.reason))
    return replace(example, title=title, reason=reason)


@dataclass(frozen=True)
class _Rule:
    """A rule that chooses the instance with the largest `score` among the `candidates`."""

    title: str
    candidates: Bools
    score: Floats
    reason: Callable[[int], str]


def choose_examples(
    tables: Mapping[str, pa.Table], classes: Sequence[str], derived: bool = False
) -> list[Example]:
    """Choose about nine instances deterministically, each text at most once.

    `classes` are the names of the classes. If the heat map is `derived` from the weights, rules that equate the
    two do not apply. A rule without candidates chooses nothing; of equal scores the first row wins. If fewer
    than FEWEST are chosen (a tiny audit), the texts that the model is most confident about are added.
    """
    total = tables["instances"].num_rows
    instances = tables["instances"]
    texts = np.arange(total)
    if TEXT in instances.column_names:
        texts = instances[TEXT].to_numpy()
    examples: list[Example] = []
    is_shown = np.zeros(total, dtype=bool)
    for rule in _rules(tables, classes, derived):
        eligible = rule.candidates & np.isfinite(rule.score) & ~is_shown
        if eligible.any():
            row = int(np.where(eligible, rule.score, -np.inf).argmax())
            examples.append(Example(row, rule.title, rule.reason(row)))
            is_shown |= texts == texts[row]
    confidence = answer_probabilities(tables["instances"])
    keys = instances["key"].to_pylist()
    while len(examples) < min(FEWEST, len(np.unique(texts))):
        row = int(np.where(is_shown, -np.inf, confidence).argmax())
        which = ("surest answers", "texts that the model is surest about")
        if len(classes) == 1:
            which = ("largest outputs", "texts of the largest outputs")
        reason = f"No other rule chose it; it is one of the {which[1]}."
        title = f"Among the {which[0]}, {shortened(text_name(keys[row]))}"
        examples.append(Example(row, title, reason))
        is_shown |= texts == texts[row]
    return examples


def _rules(
    tables: Mapping[str, pa.Table], classes: Sequence[str], derived: bool
) -> Iterator[_Rule]:
    length = column(tables, "instances", "n_tokens")
    sharp = column(tables, "instances", "max_attention")
    label = column(tables, "instances", "label")  # NaN where it is not known
    predicted = column(tables, "instances", "predicted")
    right, wrong = label == predicted, np.isfinite(label) & (label != predicted)
    sure = answer_probabilities(tables["instances"])
    scale = scale_of(tables["instances"], [*classes])
    tvd = column(tables, "permutation", "median_tvd") / scale.size
    flipped = column(tables, "permutation", "flipped")
    readable = (length >= 6) & (length <= 40)
    jsd = column(tables, "adversary", "jsd") / LN2
    jsd_bound = column(tables, "adversary", "jsd_upper") / LN2

    # The two most frequent predictions, so that both classes of a two-class model appear.
    answers, sizes = np.unique(predicted, return_counts=True)
    for c in answers[np.argsort(-sizes, kind="stable")][:2]:
        yield _Rule(
            "Another heat map, the same prediction"
            + (f": {shortened(classes[int(c)])}" if len(classes) > 1 else ""),
            readable & (sharp >= 0.4) & (jsd >= 0.5) & (predicted == c),
            sharp * jsd * sure,
            lambda i: (
                f"Attention puts {sharp[i]:.0%} on one word, yet weights "
                f"{'with a heat map' if derived else 'that are'} "
                f"{jsd[i]:.0%} of the largest possible JSD away lead to the same prediction, "
                + (
                    f"“{shortened(classes[int(predicted[i])])}” (the model's own probability of it is "
                    f"{sure[i]:.3f})."
                    if scale.unit is None
                    else f"{number(sure[i])} {scale.unit}."
                )
            ),
        )
    if not derived:
        yield _Rule(
            "Pinned down",
            readable & (jsd_bound < 0.5),
            -jsd_bound,
            lambda i: (
                "No other weights with the same prediction are further away than "
                f"{jsd_bound[i]:.0%} of the largest possible JSD, the least room of all texts of 6 to 40 "
                "words."
            ),
        )
    yield from _agreement(tables, (length >= 8) & (length <= 40))
    if not derived:
        yield _Rule(
            "Sharp, but it may point anywhere",
            readable & (sharp >= 0.5) & (tvd < 0.05),
            sharp - 10 * tvd,
            lambda i: (
                f"The largest weight is {number(sharp[i])}, but the median shuffle moves the prediction by "
                f"only {number(tvd[i])} ({scale.short})."
            ),
        )
    yield _Rule(
        "Shuffling changes the answer",
        readable & (flipped >= 0.5),
        tvd,
        lambda i: (
            f"{flipped[i]:.0%} of the shuffles lead to another class, so here it matters "
            f"which {'position' if derived else 'word'} gets which weight."
        ),
    )
    yield from _deciding_words(tables, readable & right)
    yield _Rule(
        "Sure and wrong",
        readable & wrong,
        sure,
        lambda i: (
            f"The most confident of the wrong predictions (probability {sure[i]:.3f}): what would "
            "the heat map have told you?"
        ),
    )


def _agreement(tables: Mapping[str, pa.Table], fits: Bools) -> Iterator[_Rule]:
    by_gradient = column(tables, "agreement", "tau_attention_gradient")
    by_omission = column(tables, "agreement", "tau_attention_leave_one_out")
    tau = (by_gradient + by_omission) / 2

    def numbers(i: int) -> str:
        return (
            f"in texts of 8 to 40 words: τ {number(by_gradient[i])} with the gradient, "
            f"{number(by_omission[i])} with leave-one-out."
        )

    yield _Rule(
        "Attention agrees best",
        fits & (tau > 0),
        tau,
        lambda i: f"The best agreement with the other measures, {numbers(i)}",
    )
    yield _Rule(
        "Attention agrees worst",
        fits,
        -tau,
        lambda i: f"The weakest agreement with the other measures, {numbers(i)}",
    )


def _deciding_words(tables: Mapping[str, pa.Table], fits: Bools) -> Iterator[_Rule]:
    auc = column(tables, "rationale", "auc_attention")
    yield _Rule(
        "Attention misses the deciding words",
        fits & (auc < 0.5),
        -auc,
        lambda i: (
            "The prediction is right, but the deciding words (underlined) get less weight than "
            f"the others: ROC AUC {number(auc[i])}, where 0.5 is chance."
        ),
    )
