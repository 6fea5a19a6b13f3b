"""Tables, claims and figures of a reproduction of Wiegreffe & Pinter, published numbers beside ours."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedmap.experiments import intervals
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.guidance import GUIDES
from heedmap.experiments.questions.necessity import paired_p
from heedmap.experiments.questions.trained_adversary import Trained, adversaries
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.seed_intervals import level_of, mean_interval
from heedmap.experiments.seeds import Seeds, over_seeds, right
from heedmap.papers.kit.claims import (
    NEITHER,
    Check,
    Side,
    above,
    judged,
    verdict,
    verdict_of_any,
)
from heedmap.papers.kit.learned import Learned, Score, accuracy, not_counted
from heedmap.papers.kit.reproduction import Reproduction
from heedmap.papers.kit.result import (
    Claim,
    Estimate,
    Result,
    Table,
    changed_settings,
    over_texts,
)
from heedmap.papers.wiegreffe_pinter.agreement import Agreements, adversary_name
from heedmap.papers.wiegreffe_pinter.published import (
    ADVERSARY_EPOCHS,
    F1,
    FOUND_ANTI_CORRELATED,
    FOUND_ELSEWHERE,
    FOUND_GUIDE,
    REPLICATED,
    REPLICATION,
    SEEDS,
    SOURCE,
)
from heedmap.papers.wiegreffe_pinter.settings import WiegreffePinterSettings
from heedmap.report import retraining_figures
from heedmap.report.adversary_agreement_figures import agreement_by_strength
from heedmap.settings.training import TrainSettings

F1_HOW = """F1 of class 1 on the test texts, of more than two classes the macro mean; \
ours: mean and 95 % interval over the seeds. The paper's models \
were chosen by their ROC AUC on the test texts, ours on dev; published numbers are single runs."""
GUIDE_HOW = """F1 (see above) of a model that reads each word by itself (a projection of each word, tanh, and \
the weights' mean of them) and is given these weights. The adversary's are those of the largest λ."""
ADVERSARY_HOW = """Means over the test texts. TVD is ½ Σ |p − q| over the classes, of two classes twice the \
released code's, and so is λ; JSD in nats, at most 0.69. The models were chosen on dev."""
KINDS = {"learned": "with attention", "uniform": "uniform weights"}
GUIDED = {name: f"guided by {words}" for name, words in GUIDES.items()}
COLUMNS = {
    "question": "the table of the run",
    "model": "kind of training, the guide, or the direction of the KL of an adversary",
    "seed": "which training, from 1",
    "accuracy": "share of the test texts that are right",
    "f1": "F1 of class 1; of more than two classes the macro mean",
    "learned": "whether the training has learned; empty where it cannot be told",
    "lambda": "λ of an adversary, twice the paper's",
    "tvd": "mean total variation of the prediction from the run's, at most 1",
    "jsd": "mean Jensen-Shannon divergence of the map from the run's, nats; texts of more than one word",
}
FAR = 0.4  # JSD from which the paper reports its adversaries


@dataclass(frozen=True)
class WiegreffePinter(Reproduction[WiegreffePinterSettings]):
    """One data set: the run's audit with its further trainings."""

    audit: AuditResult

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

        Models that read with given weights count in any case: that they learn less is what the paper asks.
        Of F1 one answer is the share of class 1, what guessing has: always answering 1 has more, and its
        accuracy is no better than that of the commonest class.
        """
        key = self.settings.data.dataset or ""
        ends = np.bincount(self.label, minlength=len(self.audit.classes)) / max(1, len(self.label))
        published = dict(zip(KINDS.values(), F1.get(key, ()), strict=False))
        models: dict[str, dict[object, list[Score]]] = {}
        for table, names in (("necessity", KINDS), ("guidance", GUIDED)):
            for name, words in names.items():
                seeds = self.seeds(table, name)
                for k, (share, f1) in enumerate(zip(seeds.accuracy, seeds.f1, strict=True), 1):
                    scores = [accuracy(share, float(ends.max()), len(self.label))]
                    if words in published:
                        scores.append(Score("F1", f1, float(ends[1]), published=published[words]))
                    models.setdefault(words, {})[k] = scores
        trained = self.audit.tables["trained_adversary"].to_pandas()
        for (strength, direction), part in trained.groupby(["strength", "direction"], sort=True):
            share = float((part["predicted"].to_numpy() == self.label[part["row"]]).mean())
            name = adversary_name(float(strength), str(direction))
            models[name] = {1: [accuracy(share, float(ends.max()), len(self.label))]}
        given = [KINDS["uniform"], *(words for name, words in GUIDED.items() if name != "learned")]
        return Learned(models, frozenset(given))

    @property
    def long(self) -> NDArray[np.bool_]:
        """Texts of more than one word, whose weights can differ."""
        return np.asarray(self.audit.tables["instances"]["n_tokens"].to_numpy() > 1)

    def stability(self, column: str) -> NDArray[np.float64]:
        """Return a column of how far the models of other seeds are."""
        column_values = self.audit.tables["stability"][column]
        return np.asarray(column_values.to_numpy(zero_copy_only=False), dtype=float)

    def interval(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return the 95 % interval of a mean over texts."""
        clusters = text_numbers(self.audit.tables["instances"])
        return intervals.of_mean(values, clusters, 0, (-1.0, 1.0))

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper's settings."""
        settings, train = self.settings, self.audit.settings.train
        assert isinstance(train, TrainSettings)
        sample = settings.data.train_texts
        return [
            *([] if train.vectors else ["no pretrained word vectors"]),
            *changed_settings(settings, {"seeds": "{seed}"}, {"seeds": SEEDS}),
            *changed_settings(train, {"epochs": "{epoch}"}, {"epochs": 8}),
            *changed_settings(
                settings,
                {"adversary_epochs": "adversaries of {epoch}"},
                {"adversary_epochs": ADVERSARY_EPOCHS},
            ),
            *([] if sample is None else [f"{sample} training texts"]),
        ]


def result(reproduction: WiegreffePinter) -> Result:
    """Make the result that all files of a reproduction show."""
    figures = retraining_figures
    return reproduction.make_result(
        f"Wiegreffe & Pinter on {reproduction.name}",
        [
            _f1(reproduction),
            _needed(reproduction),
            _stable(reproduction),
            _guided(reproduction),
            _helps(reproduction),
            _adversaries(reproduction),
            _elsewhere(reproduction),
            Agreements.of(reproduction.audit, reproduction.learned).table(),
            _anti_correlated(reproduction),
        ],
        figures=[
            figure
            for draw in (
                figures.necessity, figures.stability_violins, figures.stability_scatter,
                figures.guidance, figures.adversaries, agreement_by_strength,
            )
            for figure in draw(reproduction.audit)
        ],
        rows=pd.DataFrame(_rows(reproduction)),
        columns=COLUMNS,
        reports=[("the run", [("report", "run/report.html")])],
    )  # fmt: skip


def _f1(reproduction: WiegreffePinter) -> Table:
    key = reproduction.settings.data.dataset or ""
    ours = [over_seeds(reproduction.seeds("necessity", name).f1) for name in KINDS]
    lines = [["ours", *ours]]
    for numbers, source in ((F1, SOURCE), (REPLICATED, REPLICATION)):
        if key in numbers:
            lines.append([source, *(f"{value:.3f}" for value in numbers[key])])
    heads = ["source", *(reproduction.learned.marked(words, words) for words in KINDS.values())]
    return Table(f"Is attention needed? ({reproduction.name})", heads, lines, F1_HOW)


def _difference(
    reproduction: WiegreffePinter, difference: NDArray[np.float64], name: str
) -> tuple[Estimate, str, Side]:
    """Return a mean over texts with its interval, both with a paired test in words, and its side of 0."""
    low, high = interval = reproduction.interval(difference)
    number = Estimate(name, float(difference.mean()), low, high)
    words = f"{number.text}, paired test p = {paired_p(difference, 0):.2g}"
    return number, words, above(interval)


def _needed(reproduction: WiegreffePinter) -> Claim:
    """The paper: where uniform weights do as well, attention cannot be tested there."""
    table, label = reproduction.audit.tables["necessity"], reproduction.label
    difference = right(table["learned"], label).mean(1) - right(table["uniform"], label).mean(1)
    number, words, side = _difference(reproduction, difference, "accuracy over texts")
    pairs = [f"{name} {learned:.3f} and {even:.3f}" for name, (learned, even) in F1.items()]
    return _judged(
        reproduction,
        "A model with attention does better than one with uniform weights.",
        verdict([side]),
        [words],
        found=f"F1 with attention and with uniform weights: {'; '.join(pairs)}; one run each ({SOURCE}, as a "
        "replication prints it).",
        decisive=number,
    )


def _stable(reproduction: WiegreffePinter) -> Table:
    jsd, shuffled, tau, change = map(
        reproduction.stability, ("jsd", "shuffled_jsd", "tau", "change")
    )
    lines = [
        ["other seeds", f"{np.nanmean(jsd):.3f}", f"{np.nanmean(tau):.2f}", f"{change.mean():.3f}"],
        ["its weights shuffled", f"{np.nanmean(shuffled):.3f}", "0.00", "–"],
    ]
    heads = ["maps compared with", "JSD", "τ of the order", "TVD of the predictions"]
    explanation = (
        "Each text's median over the seeds, and the mean of these; shuffled weights for scale."
    )
    return Table("How different are the maps of other seeds?", heads, lines, explanation)


def _guided(reproduction: WiegreffePinter) -> Table:
    return Table.of(
        "Which weights help another model?",
        GUIDES,
        {
            "guided by": lambda name: reproduction.learned.marked(GUIDES[name], GUIDED[name]),
            "F1": lambda name: over_seeds(reproduction.seeds("guidance", name).f1),
            "accuracy": lambda name: over_seeds(reproduction.seeds("guidance", name).accuracy),
        },
        GUIDE_HOW,
    )


def _helps(reproduction: WiegreffePinter) -> Claim:
    table = reproduction.audit.tables["guidance"]
    accuracy = {name: right(table[name], reproduction.label).mean(1) for name in GUIDES}
    learned, checks = reproduction.learned, []
    compared = ("uniform", "learned", "adversary")
    # Where no guide lets the small model learn, nothing is compared.
    has_any = any(GUIDED[name] not in learned.failed for name in ("base", *compared))
    for name in compared:
        difference = accuracy["base"] - accuracy[name]
        number, words, side = _difference(reproduction, difference, f"against {GUIDES[name]}")
        checks.append(
            Check(words, side, [GUIDED[name]], number)
            if has_any
            else Check(not_counted(words), NEITHER)
        )
    claim = judged(
        "The LSTM's weights are the best guide: better than uniform ones, than those the small model learns, "
        "and than an adversary's.",
        checks,
        learned,
        basis=over_texts(reproduction.settings.seeds),
        found=FOUND_GUIDE,
    )
    return learned.judged(claim, KINDS["learned"])


def _adversaries(reproduction: WiegreffePinter) -> Table:
    lines = []
    for adversary in reproduction.adversaries:
        name = adversary_name(adversary.strength, adversary.direction)
        distances = adversary.tvd.mean(), adversary.jsd[reproduction.long].mean()
        lines.append(
            [reproduction.learned.marked(name, name), *(f"{mean:.3f}" for mean in distances)]
        )
    tvd = reproduction.stability("change").mean()
    lines.append(["another seed", f"{tvd:.3f}", f"{np.nanmean(reproduction.stability('jsd')):.3f}"])
    return Table("Trained to attend elsewhere", ["model", "TVD", "JSD"], lines, ADVERSARY_HOW)


def _elsewhere(reproduction: WiegreffePinter) -> Claim:
    """The paper finds them, but with more change of the prediction than adversarial weights of single texts.

    One of those that were tried is enough, so each has its part of the error (Bonferroni).
    """
    level = level_of(len(reproduction.adversaries) - 1)
    numbers, sides, estimates = [], [], []
    for adversary in reproduction.adversaries[1:]:
        jsd = adversary.jsd[reproduction.long]
        if jsd.mean() < FAR:
            continue
        nearer = reproduction.stability("change") - adversary.tvd
        low, high = mean_interval(nearer.tolist(), level)
        number = Estimate(adversary.name, float(nearer.mean()), low, high)
        words = f"{number.text}, JSD {jsd.mean():.2f}; TVD of another seed less the adversary's"
        if adversary_name(adversary.strength, adversary.direction) in reproduction.learned.failed:
            sides.append(NEITHER)
            numbers.append(not_counted(words))
            continue
        is_far = mean_interval(jsd.tolist(), level)[0] >= FAR
        sides.append(Side(is_far and low > 0, high <= 0))
        estimates.append(number)
        numbers.append(words)
    return _judged(
        reproduction,
        f"A model can be trained whose maps are far from this one's (JSD ≥ {FAR}) and whose answers are no "
        "farther than another seed's.",
        verdict_of_any(sides),
        numbers or ["no adversary came that far"],
        trainings=1,  # of each adversary
        found=FOUND_ELSEWHERE,
        decisive=max(estimates, key=lambda number: number.low, default=None),
    )


def _anti_correlated(reproduction: WiegreffePinter) -> Claim:
    """Judge what Snell et al.'s slides say of the paper's adversaries."""
    agreement = Agreements.of(reproduction.audit, reproduction.learned)
    verdict_word, numbers, decisive = agreement.anti_correlated()
    return _judged(
        reproduction,
        "An adversary's attention becomes anti-correlated with its explanations, its own leave-one-out or "
        "gradient (Snell et al.'s slides).",
        verdict_word,
        numbers,
        trainings=1,  # of each adversary
        found=FOUND_ANTI_CORRELATED,
        decisive=decisive,
    )


def _judged(
    reproduction: WiegreffePinter,
    text: str,
    verdict_word: str,
    numbers: list[str],
    trainings: int | None = None,
    found: str = "",
    decisive: Estimate | None = None,
) -> Claim:
    """Return a claim with what decides it; undecided if the model with attention has not learned."""
    basis = over_texts(reproduction.settings.seeds if trainings is None else trainings)
    claim = Claim(text, verdict_word, tuple(numbers), basis, found, decisive)
    return reproduction.learned.judged(claim, KINDS["learned"])


def _rows(reproduction: WiegreffePinter) -> list[dict[str, object]]:
    """Return a row per model for CSV."""
    rows: list[dict[str, object]] = []
    for table, names in (("necessity", KINDS), ("guidance", GUIDED)):
        for name, words in names.items():
            seeds = reproduction.seeds(table, name)
            for number, (share, f1) in enumerate(zip(seeds.accuracy, seeds.f1, strict=True), 1):
                learned = reproduction.learned.of(words, number)
                rows.append(
                    {
                        "question": table, "model": name, "seed": number, "accuracy": share, "f1": f1,
                        "learned": learned,
                    }
                )  # fmt: skip
    for adversary in reproduction.adversaries:
        rows.append(
            {
                "question": "trained_adversary", "model": adversary.direction,
                "lambda": adversary.strength, "tvd": float(adversary.tvd.mean()),
                "jsd": float(adversary.jsd[reproduction.long].mean()),
            }
        )  # fmt: skip
    return rows
