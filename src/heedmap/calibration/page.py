"""The page of a calibration in Markdown: what is planted, why its truth holds, and how often the rule errs."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from heedmap.calibration.choice import GRID, LATER, columns_of, kind_of, thresholds
from heedmap.calibration.families import families
from heedmap.calibration.measure import OTHER_MAPS, Measured
from heedmap.experiments.rates import ALL, OfKind, Rates
from heedmap.experiments.rule import ANSWERS

TRUTHS = {
    "right": "the map's words make the answer, and the weights matter",
    "words": "they are the right words, but the weights do not make the answer",
    "part": "right for some classes, or one of several sufficient words",
    "between": "right in three quarters of the texts",
    "wrong": "right in at most half of the texts",
    "open": "it cannot be told, even in principle",
}

COUNTS_HEADING = "## How often the rule is wrong"
LATER_HEADING = "## Counted on its own: "


def families_text() -> str:
    """Return the table of the families. It depends on nothing that was measured."""
    return "\n".join(
        [
            "# How often the bottom line is wrong",
            "",
            "## What is planted",
            "",
            "A planted model is made so that it is known whether its map is right. Each family is one",
            "construction, made for several kinds of model and with a drawn difficulty: number of classes",
            "(2, 3, 5 or 20), margin, sharpness, deciding words, noise, length and number of texts. This",
            "table does not depend on anything that was measured. Trained models of texts of sentences",
            "and of corpora, and of bags drawn for them, of pictures, and transformers of pairs also learn",
            "from texts without a cue, whose labels are drawn (a fifth of the training texts), so that no",
            "class is what the model says anyway.",
            "",
            *(f"* **{truth}**: {words}." for truth, words in TRUTHS.items()),
            "",
            *_table(
                ("family", "truth", "how it is made", "why that is true", "kinds of model"),
                (
                    (
                        family.name,
                        family.truth,
                        family.recipe,
                        family.reason,
                        ", ".join(family.makers),
                    )
                    for family in families().values()
                ),
            ),
            "",
        ]
    )


def page(rates: Rates, measured: Sequence[Measured]) -> str:
    """Return the whole page."""
    choosing = [plant for plant in measured if kind_of(plant.plant) not in LATER]
    admitted = [plant for plant in choosing if plant.admitted]
    overall = rates.kinds[ALL]
    return "\n".join(
        [
            families_text(),
            COUNTS_HEADING,
            "",
            f"Written by `heedmap calibrate` (version {rates.rules} of the rule; planted on {rates.name}). Of",
            f"{len(choosing)} plants {len(admitted)} were admitted: the others did not become what they",
            "should be. The checks use nothing of what the rule measures, but for two: the families in",
            "which words or weights matter alone are admitted by shuffled weights, and evidence",
            "everywhere by what the first third of a text says. The answers about each family are by",
            "thresholds that were chosen on all other families. Shares have Clopper and Pearson's",
            "intervals (95 %).",
            "",
            *_kinds({kind: of for kind, of in rates.kinds.items() if kind not in LATER}),
            "",
            "## Answers by family",
            "",
            *_families(overall),
            "",
            "## Thresholds",
            "",
            f"Chosen on all families, among {len(thresholds())} combinations; the last column is what an audit",
            "uses.",
            "",
            *_table(
                ("threshold", "tried", "chosen"),
                (
                    (name, ", ".join(map(str, GRID.get(name, ()))) or "fixed", f"{value:g}")
                    for name, value in rates.thresholds.model_dump().items()
                ),
            ),
            "",
            "## The score as a score",
            "",
            "How often the real map of a right plant has a higher score than a wrong map of the same",
            "model and texts (a tie counts half; the test is that of Causal Diagnosticity, 2025). The",
            "score of a text is the share of its lead that is gone without the map's first words, times",
            "the share that stays with the highlighted ones alone, each between 0 and 1.",
            "",
            *_table(("beside", "models", "texts"), _preferred(admitted)),
            "",
            *later_kinds(rates, measured),
        ]
    )


def later_kinds(rates: Rates, measured: Sequence[Measured]) -> list[str]:
    """Return the lines of the page on each `LATER` kind that was planted."""
    return [line for lines in _by_later_kind(rates, measured).values() for line in lines]


def _by_later_kind(rates: Rates, measured: Sequence[Measured]) -> dict[str, list[str]]:
    by_kind = {}
    for kind in LATER:
        of_kind = [plant for plant in measured if kind_of(plant.plant) == kind]
        if of_kind and kind in rates.kinds:
            admitted = sum(plant.admitted for plant in of_kind)
            by_kind[kind] = [
                f"{LATER_HEADING}{kind}",
                "",
                f"Of {len(of_kind)} plants {admitted} were admitted. The answers",
                "are by the thresholds above, in whose choice these families had no part.",
                "",
                *_kinds({kind: rates.kinds[kind]}),
                "",
                *_families(rates.kinds[kind]),
                "",
            ]
    return by_kind


def with_later_kinds_on(text: str, rates: Rates, measured: Sequence[Measured]) -> str:
    """Return a page with its list of families as it is now, and the lines on `LATER` kinds made again.

    Of a kind that was not measured they stay.
    """
    counts, *sections = text[text.index(COUNTS_HEADING) :].split(LATER_HEADING)
    stays = {section.partition("\n")[0]: section.rstrip() for section in sections}
    by_kind = {kind: [f"{LATER_HEADING}{section}", ""] for kind, section in stays.items()}
    by_kind |= _by_later_kind(rates, measured)
    lines = [line for kind in LATER for line in by_kind.get(kind, ())]
    return "\n".join([families_text(), counts.rstrip(), "", *lines])


def _kinds(kinds: Mapping[str, OfKind]) -> list[str]:
    heads = ("kind of model", "right", "yes", "no", "wrong", "yes", "no")
    rows = (_of_kind(kind, counts) for kind, counts in kinds.items())
    return _table((*heads, "worst family of wrong maps"), rows)


def _families(of_kind: OfKind) -> list[str]:
    return _table(
        ("family", "truth", "n", *ANSWERS),
        (
            (
                name,
                family.truth,
                str(family.answers.n),
                *(str(family.answers.counts.get(a, 0)) for a in ANSWERS),
            )
            for name, family in of_kind.families.items()
        ),
    )


def _of_kind(kind: str, counts: OfKind) -> tuple[str, ...]:
    right, wrong = counts.of("right"), counts.of("wrong")
    worst = (
        "–"
        if counts.worst is None
        else f"{counts.worst[0]}: {counts.worst[1].count} of {counts.worst[1].n}"
    )
    return (
        kind,
        str(right.n),
        str(right.rate("yes")),
        str(right.rate("no")),
        str(wrong.n),
        str(wrong.rate("yes")),
        str(wrong.rate("no")),
        worst,
    )


def _preferred(admitted: Sequence[Measured]) -> list[tuple[str, str, str]]:
    """Return how often the real map is preferred to others (Causal Diagnosticity, 2025)."""
    by_name = families()
    right = [
        columns_of(numbers)
        for numbers in admitted
        if by_name[numbers.plant.family].truth == "right"
    ]
    rows = []
    for name in (*OTHER_MAPS, "uniform"):
        pairs = [(_scores(texts, "map"), _scores(texts, name)) for texts in right]
        models = [_wins(real.mean(), wrong.mean()) for real, wrong in pairs if len(real)]
        texts = np.concatenate([_wins(real, wrong) for real, wrong in pairs] or [np.zeros(0)])
        words = {"turned": "the weights turned round", "shuffled": "the weights shuffled"}
        rows.append(
            (
                words.get(name, "uniform weights"),
                f"{np.mean(models):.1%} of {len(models)}" if models else "none",
                f"{texts.mean():.1%} of {len(texts)}" if len(texts) else "none",
            )
        )
    return rows


def _scores(texts: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return the score of each text; an even map highlights nothing, and has 0."""
    lead = texts["probability"] - texts["guessing"]
    explained = np.isfinite(texts["gone_map"]) & (lead > 0)
    if name == "uniform":
        return np.zeros(int(explained.sum()))
    gone = np.clip(texts[f"gone_{name}"] / np.where(explained, lead, 1.0), 0, 1)
    alone = np.clip(
        (texts[f"alone_{name}"] - texts["guessing"]) / np.where(explained, lead, 1.0), 0, 1
    )
    scores: np.ndarray = (gone * alone)[explained]
    return scores


def _wins(real: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    wins: np.ndarray = (real > wrong) + 0.5 * (real == wrong)
    return wins


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
