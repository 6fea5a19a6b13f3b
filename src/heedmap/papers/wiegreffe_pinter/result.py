"""Tables, claims and figures of a reproduction of Wiegreffe & Pinter, published numbers beside ours."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedmap.experiments import intervals
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.guidance import GUIDES
from heedmap.experiments.questions.necessity import paired_p
from heedmap.experiments.questions.trained_adversary import Trained, adversaries
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.seeds import Seeds, over_seeds, right
from heedmap.papers.kit.learned import Learned, Score, accuracy
from heedmap.papers.kit.result import Claim, Result, Table, over_texts, signed, unlike, with_unlike
from heedmap.papers.wiegreffe_pinter.published import (
    ADVERSARY_EPOCHS,
    F1,
    REPLICATED,
    REPLICATION,
    SEEDS,
    SOURCE,
)
from heedmap.papers.wiegreffe_pinter.settings import WiegreffePinterSettings
from heedmap.report import retraining_figures as drawn
from heedmap.report.wording import plural
from heedmap.settings import TrainSettings

F1_HOW = """F1 of class 1 on the test texts; ours: mean and 95 % interval over the seeds. The paper's models \
were chosen by their ROC AUC on the test texts, ours on dev; published numbers are single runs."""
GUIDE_HOW = """F1 of class 1 of a model that reads each word by itself (a projection of each word, tanh, and \
the weights' mean of them) and is given these weights. The adversary's are those of the largest λ."""
ADVERSARY_HOW = """Means over the test texts. TVD is ½ Σ |p − q| over both classes, twice the released code's, \
and so is λ; JSD in nats, at most 0.69. The models were chosen on dev."""
KINDS = {"learned": "with attention", "uniform": "uniform weights"}
GUIDED = {name: f"guided by {words}" for name, words in GUIDES.items()}
COLUMNS = {
    "question": "the table of the run",
    "model": "kind of training, the guide, or the direction of the KL of an adversary",
    "seed": "which training, from 1",
    "accuracy": "share of the test texts that are right",
    "f1": "F1 of class 1",
    "learned": "whether the training has learned; empty where it cannot be told",
    "lambda": "λ of an adversary, twice the paper's",
    "tvd": "mean total variation of the prediction from the run's, at most 1",
    "jsd": "mean Jensen-Shannon divergence of the map from the run's, nats; texts of more than one word",
}
FAR = 0.4  # JSD from which the paper reports its adversaries


@dataclass(frozen=True)
class Reproduction:
    """One data set: the run's audit with its further trainings."""

    name: str
    settings: WiegreffePinterSettings
    audit: AuditResult
    notes: list[str]
    folder: Path

    @cached_property
    def label(self) -> NDArray[np.int64]:
        """The label of each audited text."""
        return np.asarray(self.audit.tables["necessity"]["label"].to_numpy(), dtype=np.int64)

    def seeds(self, table: str, name: str) -> Seeds:
        """Return the predictions of one kind of model."""
        return Seeds(self.audit.tables[table][name], self.label, self.audit.classes)

    @cached_property
    def adversaries(self) -> list[Trained]:
        """The trained adversaries, the control first."""
        return adversaries(self.audit.tables["trained_adversary"])

    @cached_property
    def learned(self) -> Learned:
        """Which models have learned, by what they are called: by accuracy, and by the published F1.

        Of F1 one answer is the share of class 1, what guessing has: always answering 1 has more, and its
        accuracy is no better than that of the commonest class.
        """
        key = self.settings.data.dataset or ""
        ends = np.bincount(self.label, minlength=2) / max(1, len(self.label))
        published = dict(zip(KINDS.values(), F1.get(key, ()), strict=False))
        found: dict[str, dict[object, list[Score]]] = {}
        for table, names in (("necessity", KINDS), ("guidance", GUIDED)):
            for name, words in names.items():
                seeds = self.seeds(table, name)
                for k, (share, f1) in enumerate(zip(seeds.accuracy, seeds.f1, strict=True), 1):
                    scores = [accuracy(share, float(ends.max()), len(self.label))]
                    if words in published:
                        scores.append(Score("F1", f1, float(ends[1]), published=published[words]))
                    found.setdefault(words, {})[k] = scores
        every = self.audit.tables["trained_adversary"].to_pandas()
        for (strength, direction), part in every.groupby(["strength", "direction"], sort=True):
            share = float((part["predicted"].to_numpy() == self.label[part["row"]]).mean())
            name = adversary_name(float(strength), str(direction))
            found[name] = {1: [accuracy(share, float(ends.max()), len(self.label))]}
        return Learned(found)

    @property
    def long(self) -> NDArray[np.bool_]:
        """Texts of more than one word, whose weights can differ."""
        return np.asarray(self.audit.tables["instances"]["n_tokens"].to_numpy() > 1)

    def interval(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return the 95 % interval of a mean over texts."""
        clusters = text_numbers(self.audit.tables["instances"])
        return intervals.of_mean(values, clusters, 0, (-1.0, 1.0))


def result(found: Reproduction) -> Result:
    """Make the result that all files of a reproduction show."""
    f1, guided, trained = _f1(found), _guided(found), _adversaries(found)
    differs = differences(found)
    figures = [
        with_unlike(one, differs, found.learned.failed)
        for draw in (
            drawn.necessity, drawn.stability_violins, drawn.stability_scatter, drawn.guidance,
            drawn.adversaries,
        )
        for one in draw(found.audit)
    ]  # fmt: skip
    return Result(
        title=f"Wiegreffe & Pinter on {found.name}",
        notes=[note for note in (*found.notes, unlike(differs)) if note],
        summary=f1,
        sections=[
            f1,
            _judged(found, _needed(found), found.settings.seeds),
            _stable(found),
            guided,
            _judged(found, _helps(found), found.settings.seeds),
            trained,
            _judged(found, _elsewhere(found), trainings=1),  # of each adversary
        ],
        figures=figures,
        rows=pd.DataFrame(_rows(found)),
        latex=f1,
        columns=COLUMNS,
        not_learned=found.learned.sentence(),
        reports=[("the run", [("report", "run/report.html")])],
    )


def differences(found: Reproduction) -> list[str]:
    """List in words how a reproduction differs from the paper's settings."""
    train = found.audit.settings.train
    assert isinstance(train, TrainSettings)
    settings = found.settings
    return [
        *([] if train.vectors else ["no pretrained word vectors"]),
        *(
            []
            if settings.seeds == SEEDS
            else [f"{plural(settings.seeds, 'seed')} instead of {SEEDS}"]
        ),
        *([] if train.epochs == 8 else [f"{plural(train.epochs, 'epoch')} instead of 8"]),
        *(
            []
            if settings.adversary_epochs == ADVERSARY_EPOCHS
            else [
                f"adversaries of {plural(settings.adversary_epochs, 'epoch')} instead of {ADVERSARY_EPOCHS}"
            ]
        ),
        *(
            [f"{settings.data.train_texts} training texts"]
            if settings.data.train_texts is not None
            else []
        ),
    ]


def _f1(found: Reproduction) -> Table:
    key = found.settings.data.dataset or ""
    lines = [
        [
            "ours",
            over_seeds(found.seeds("necessity", "learned").f1),
            over_seeds(found.seeds("necessity", "uniform").f1),
        ]
    ]
    for numbers, source in ((F1, SOURCE), (REPLICATED, REPLICATION)):
        if key in numbers:
            lines.append([source, *(f"{value:.3f}" for value in numbers[key])])
    heads = ["source", *(found.learned.marked(words, words) for words in KINDS.values())]
    return Table(f"Is attention needed? ({found.name})", heads, lines, F1_HOW)


def _needed(found: Reproduction) -> Claim:
    """The paper: where uniform weights do as well, attention cannot be tested there."""
    difference = right(found.audit.tables["necessity"]["learned"], found.label).mean(1)
    difference -= right(found.audit.tables["necessity"]["uniform"], found.label).mean(1)
    low, high = found.interval(difference)
    verdict = "survives" if low > 0 else "does not" if high <= 0 else "undecided"
    return Claim(
        "A model with attention does better than one with uniform weights.",
        verdict,
        (
            f"accuracy {signed(difference.mean())} [{signed(low)}, {signed(high)}] over texts, paired test "
            f"p = {paired_p(difference, 0):.2g}",
        ),
    )


def _stable(found: Reproduction) -> Table:
    table = found.audit.tables["stability"]
    jsd, shuffled, tau = (
        np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=float)
        for name in ("jsd", "shuffled_jsd", "tau")
    )
    change = table["change"].to_numpy()
    lines = [
        ["other seeds", f"{np.nanmean(jsd):.3f}", f"{np.nanmean(tau):.2f}", f"{change.mean():.3f}"],
        ["its weights shuffled", f"{np.nanmean(shuffled):.3f}", "0.00", "–"],
    ]
    heads = ["maps compared with", "JSD", "τ of the order", "TVD of the predictions"]
    how = "Each text's median over the seeds, and the mean of these; shuffled weights for scale."
    return Table("How different are the maps of other seeds?", heads, lines, how)


def _guided(found: Reproduction) -> Table:
    lines = []
    for name, words in GUIDES.items():
        seeds = found.seeds("guidance", name)
        label = found.learned.marked(words, GUIDED[name])
        lines.append([label, over_seeds(seeds.f1), over_seeds(seeds.accuracy)])
    return Table(
        "Which weights help another model?", ["guided by", "F1", "accuracy"], lines, GUIDE_HOW
    )


def _helps(found: Reproduction) -> Claim:
    table = found.audit.tables["guidance"]
    accuracy = {name: right(table[name], found.label).mean(1) for name in GUIDES}
    numbers, verdicts = [], []
    for name in ("uniform", "learned", "adversary"):
        difference = accuracy["base"] - accuracy[name]
        low, high = found.interval(difference)
        verdicts.append((low > 0, high <= 0))
        numbers.append(
            f"against {GUIDES[name]}: {signed(difference.mean())} [{signed(low)}, {signed(high)}], paired "
            f"test p = {paired_p(difference, 0):.2g}"
        )
    return Claim(
        "The LSTM's weights are the best guide: better than uniform ones, than those the small model learns, "
        "and than an adversary's.",
        _verdict(verdicts),
        tuple(numbers),
    )


def adversary_name(strength: float, direction: str) -> str:
    """Return what an adversary is called: its λ, and the direction of KL."""
    first = "adversary ‖ base" if direction == "adversary" else "base ‖ adversary"
    return f"λ {strength:g}, KL({first})" if strength else "λ = 0, the control"


def _adversaries(found: Reproduction) -> Table:
    lines = []
    for one in found.adversaries:
        name = adversary_name(one.strength, one.direction)
        lines.append(
            [
                found.learned.marked(name, name),
                f"{one.tvd.mean():.3f}",
                f"{one.jsd[found.long].mean():.3f}",
            ]
        )
    change = found.audit.tables["stability"]["change"].to_numpy()
    jsd = np.asarray(
        found.audit.tables["stability"]["jsd"].to_numpy(zero_copy_only=False), dtype=float
    )
    lines.append(["another seed", f"{change.mean():.3f}", f"{np.nanmean(jsd):.3f}"])
    return Table("Trained to attend elsewhere", ["model", "TVD", "JSD"], lines, ADVERSARY_HOW)


def _elsewhere(found: Reproduction) -> Claim:
    """The paper finds them, but with more change of the prediction than adversarial weights of single texts."""
    seeds = found.audit.tables["stability"]["change"].to_numpy()
    numbers, verdicts = [], []
    for one in found.adversaries[1:]:
        far = one.jsd[found.long].mean()
        if far < FAR:
            continue
        difference = one.tvd - seeds
        low, high = found.interval(difference)
        verdicts.append((high < 0, low >= 0))
        numbers.append(
            f"{one.name}: JSD {far:.2f}, TVD less that of another seed {signed(difference.mean())} "
            f"[{signed(low)}, {signed(high)}]"
        )
    return Claim(
        f"A model can be trained whose maps are far from this one's (JSD ≥ {FAR}) and whose answers are no "
        "farther than another seed's.",
        "survives"
        if any(yes for yes, _ in verdicts)
        else _verdict(verdicts)
        if numbers
        else "undecided",
        tuple(numbers) or ("no adversary came that far",),
    )


def _judged(found: Reproduction, claim: Claim, trainings: int) -> Claim:
    """Return a claim with what decides it; undecided if the model with attention has not learned."""
    based = replace(claim, basis=over_texts(trainings))
    return found.learned.judged(based, KINDS["learned"])


def _verdict(each: Sequence[tuple[bool, bool]]) -> str:
    """Return `survives` where all show it for certain, `does not` where one shows the contrary."""
    if each and all(yes for yes, _ in each):
        return "survives"
    return "does not" if any(no for _, no in each) or not each else "undecided"


def _rows(found: Reproduction) -> list[dict[str, object]]:
    """Return a row per model for CSV."""
    rows: list[dict[str, object]] = []
    for table, names in (("necessity", KINDS), ("guidance", GUIDED)):
        for name, words in names.items():
            seeds = found.seeds(table, name)
            for k, (share, f1) in enumerate(zip(seeds.accuracy, seeds.f1, strict=True)):
                rows.append(
                    {
                        "question": table,
                        "model": name,
                        "seed": k + 1,
                        "accuracy": share,
                        "f1": f1,
                        "learned": found.learned.of(words, k + 1),
                    }
                )
    for one in found.adversaries:
        rows.append(
            {
                "question": "trained_adversary", "model": one.direction, "lambda": one.strength,
                "tvd": float(one.tvd.mean()), "jsd": float(one.jsd[found.long].mean()),
            }
        )  # fmt: skip
    return rows
