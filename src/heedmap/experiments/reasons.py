"""Why the bottom line says what it says of a map, and what to do now: the rule's numbers in words."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from heedmap.experiments.questions.alternatives import CANDIDATES
from heedmap.experiments.results import signed_percent
from heedmap.experiments.rounding import number
from heedmap.experiments.rule import (
    FEWEST,
    FEWEST_TEXTS,
    MOST_FEW,
    MOST_TEXTS,
    Answer,
    ClassAnswer,
    ClassNumbers,
    Column,
    MapNumbers,
    Thresholds,
    answer,
    judge_class,
    kept_alone,
    map_numbers,
    share_of_lead,
)
from heedmap.experiments.scales import CLASSES as OF_CLASSES
from heedmap.experiments.scales import Scale

GLOSSES = {
    "read_out_attention": "read-out × attention (each word's weight times what its state says for the answer)",
    "read_out": "the read-out (what each word's state says for the answer)",
    "leave_one_out": "leave-one-out (what the answer loses without each word)",
}
"""The candidates of `alternatives`, explained."""
LISTED = 6  # classes that are named
FEW_CHANGES = 0.05  # of the answers, below which other weights seem to change nothing
MORE = 30  # texts of each class, from which on a class can be judged well
MORE_TEXTS = "audit more texts"  # so begins the advice where there are fewer
NOT_JUDGED = ("few", "flat")  # of such a class nothing is known

NO_WORDS = "no small set of words makes the answer"

CLASSES: dict[ClassAnswer, str] = {
    "right": "it highlights the words that make the answer",
    "sufficient": "the words that it highlights suffice, but so do others that it misses",
    "needed": "the words that it highlights are needed, but others that it misses are needed, too",
    "default": "no map can show why, for the model gives this answer even when it sees nothing of the text",
    "wrong": "words other than those that it highlights make the answer",
    "unclear": "it is neither clearly right nor clearly wrong",
    "flat": "the answer is hardly likelier than a guess, so that nothing can be lost",
    "few": f"there are fewer than {FEWEST} texts",
}
"""What is said of the texts that are predicted to be of a class."""


def because(said: Answer, numbers: MapNumbers, t: Thresholds, names: Sequence[str]) -> str:
    """Give the reason for an answer. `names`: of the classes."""
    judged = _judged(numbers, t)
    if said == "yes":
        return (
            "without the highlighted words the answers are lost, with these words alone the answers stay, and "
            "the weights matter"
        )
    if said == "words":
        return "other weights hardly change what is predicted"
    if said == "no":
        return _why_not(numbers, judged.get("wrong", []), t)
    return (
        _which_part(numbers, judged, t, names)
        if said == "in part"
        else _why_unknown(numbers, judged)
    )


def _judged(numbers: MapNumbers, t: Thresholds) -> dict[ClassAnswer, list[ClassNumbers]]:
    """Return the predicted classes by what is said of them."""
    judged: dict[ClassAnswer, list[ClassNumbers]] = {}
    for x in numbers.classes:
        judged.setdefault(judge_class(x, t), []).append(x)
    return judged


def _why_not(numbers: MapNumbers, wrong: Sequence[ClassNumbers], t: Thresholds) -> str:
    if sum(x.nothing * x.n for x in numbers.classes) > numbers.texts / 2:
        return "it highlights nothing, because its weights are nearly even or spread over too many words"
    if _is_of_no_words(wrong, t):
        return NO_WORDS
    return CLASSES["wrong"]


def _said_of(verdict: ClassAnswer, classes: Sequence[ClassNumbers], t: Thresholds) -> str:
    """Say what the map is for the texts of some classes of which the rule says the same."""
    if verdict == "wrong" and all(x.nothing > MOST_TEXTS for x in classes):
        return "it highlights nothing in most of them"
    if verdict == "wrong" and _is_of_no_words(classes, t):
        return NO_WORDS
    return CLASSES[verdict]


def _is_of_no_words(classes: Sequence[ClassNumbers], t: Thresholds) -> bool:
    """Return whether no small set of words makes the answers of some classes."""
    return all(x.best_gone < t.carried for x in classes)


def _parts(judged: Mapping[ClassAnswer, list[ClassNumbers]]) -> list[ClassAnswer]:
    return [verdict for verdict in judged if verdict not in NOT_JUDGED]


def _which_part(
    numbers: MapNumbers,
    judged: Mapping[ClassAnswer, list[ClassNumbers]],
    t: Thresholds,
    names: Sequence[str],
) -> str:
    kinds = _parts(judged)
    if len(kinds) > 1:
        return "; ".join(
            f"for {named(judged[verdict], names)}, {_said_of(verdict, judged[verdict], t)}"
            for verdict in kinds
        )
    if kinds and kinds[0] not in ("right", "wrong", "unclear"):
        return CLASSES[kinds[0]]
    found = f"it finds the deciding words in {_found(numbers)}"
    if numbers.held < t.holding * numbers.losing:
        share = numbers.held / numbers.losing
        return f"{found}, which is {share:.0%}, where a yes needs {t.holding:.0%} or more"
    return f"{found}, and misses them in the others"


def _why_unknown(numbers: MapNumbers, judged: Mapping[ClassAnswer, list[ClassNumbers]]) -> str:
    if numbers.texts < FEWEST_TEXTS or set(judged) <= {"few"}:
        return "there are too few texts of three words or more"
    if sum(x.n for x in judged.get("few", [])) > MOST_FEW * numbers.texts:
        return f"most texts are of predicted classes with fewer than {FEWEST} texts"
    if set(judged) <= {*NOT_JUDGED}:
        return "the answers are hardly likelier than guesses, so that nothing can be lost"
    if set(judged) <= {*NOT_JUDGED, "default"}:
        return "no map can show why, for the model gives these answers even when it sees nothing of the texts"
    if "unclear" in judged and set(judged) - {*NOT_JUDGED, "unclear"}:
        return f"for some of the predicted classes {CLASSES['unclear']}"
    return CLASSES["unclear"]


def named(classes: Sequence[ClassNumbers], names: Sequence[str]) -> str:
    """Name predicted classes, of many the first ones."""
    quoted = [f"“{names[x.number]}”" for x in classes[:LISTED]]
    rest = [f"one of {len(classes) - LISTED} more classes"] if len(classes) > LISTED else []
    *leading, final = [*quoted, *rest]
    return (
        f"texts predicted {', '.join(leading)} or {final}"
        if leading
        else f"texts predicted {final}"
    )


def what_to_do(
    said: Answer,
    numbers: MapNumbers,
    texts: Mapping[str, Column],
    t: Thresholds,
    names: Sequence[str],
    scale: Scale = OF_CLASSES,
) -> str:
    """Say what to do now, where the answer is no yes."""
    if said == "words":
        return (
            "show the map as the words that the answer rests on, not as how the model weighs them"
        )
    tried = [name for name in CANDIDATES if np.isfinite(texts.get(f"gone_{name}", np.nan)).any()]
    for name in tried:
        candidate_numbers = map_numbers(texts, name)
        if answer(candidate_numbers, t) in ("yes", "words"):
            share = _found(candidate_numbers)
            return f"show {GLOSSES[name]} instead, which finds the deciding words in {share}"
    judged = _judged(numbers, t)
    unsure = [x for verdict in ("unclear", "few") for x in judged.get(verdict, []) if x.n < MORE]
    if said == "cannot tell" or unsure:
        fewest = min((x.n for x in unsure or numbers.classes), default=0)
        if fewest < MORE:
            group = "predicted class" if scale.unit is None else "side of the mean of all outputs"
            return f"{MORE_TEXTS}, {MORE} or more of each {group} (the smallest has {fewest})"
    if set(judged) == {"flat"}:
        return "first make a model that is surer of its answers"
    if said == "in part" or (said == "cannot tell" and "right" in judged):
        return _show_a_part(judged, names)
    listed = ", ".join(CANDIDATES[name] for name in tried)
    none = f"; none of those that were tried ({listed}) passes the same test" if tried else ""
    return f"show no map of words{none}"


def _found(numbers: MapNumbers) -> str:
    return f"{numbers.held} of {numbers.losing} texts"


def _show_a_part(judged: Mapping[ClassAnswer, list[ClassNumbers]], names: Sequence[str]) -> str:
    missed = [verdict for verdict in ("sufficient", "needed") if verdict in judged]
    if "right" in judged and len(judged.keys() - {*NOT_JUDGED}) > 1:
        return f"show the map only for {named(judged['right'], names)}"
    if missed and not {"wrong", "default"} & judged.keys():
        verb = " or ".join(
            "suffice" if verdict == "sufficient" else "are needed" for verdict in missed
        )
        return f"if you show the map, say that other words {verb}, too"
    return "show the map only for texts that pass the same test by themselves (in the table `highlights`)"


def measured(
    numbers: MapNumbers, texts: Mapping[str, Column], t: Thresholds, scale: Scale = OF_CLASSES
) -> dict[str, str]:
    """Say what was measured, over all texts that were asked: each sentence under the question it is about.

    "needed", "sufficient" and "permutation" are questions of the card; "nothing" counts the texts in which the
    map highlights nothing, and "holding" those in which it finds the deciding words.
    """
    if not numbers.classes:
        return {}
    is_asked = np.isfinite(texts["gone_map"])
    lead = np.where(is_asked, texts["probability"] - texts["guessing"], np.nan)

    def share(values: Column) -> str:
        return _part(share_of_lead(values, lead))

    nothing = sum(x.nothing * x.n for x in numbers.classes)
    sentences = {
        "needed": (
            "Left out, the words that the map puts first (up to a third of all) take away "
            f"{share(texts['gone_map'])} of {scale.lead}; random words take {share(texts['gone_random'])}."
        )
    }
    if nothing < numbers.texts:
        sentences["sufficient"] = (
            "Left alone, the highlighted words (each with at least twice the weight of an even map) "
            f"keep {share(kept_alone(texts, 'map'))} of the lead; as many random words keep "
            f"{share(kept_alone(texts, 'random'))}."
        )
    if nothing:
        sentences["nothing"] = f"In {nothing:.0f} of {numbers.texts} texts nothing is highlighted."
    sentences["holding"] = _holding(numbers, t)
    return sentences | _changes(texts, t, scale)


def _part(share: float) -> str:
    """Return a share of the lead. More than all of it is gone where the answer falls below a guess."""
    if not math.isfinite(share):
        return "an unknown part"
    percent = signed_percent(min(max(share, 0.0), 1.0))
    return {"0%": "nothing", "100%": "all"}.get(percent, percent)


def _holding(numbers: MapNumbers, t: Thresholds) -> str:
    have = (
        f"{numbers.losing} of {numbers.texts} texts have deciding words: some third of their words without "
        "which half of the lead is gone."
    )
    if not numbers.losing:
        return have
    low, high = numbers.holding_interval
    unsure = ", so that more texts might change the answer" if low < t.holding < high else ""
    return (
        f"{have} The map finds them in {numbers.held} of these, {numbers.held / numbers.losing:.0%} "
        f"[{low:.0%}, {high:.0%}]; a yes needs {t.holding:.0%} or more{unsure}."
    )


def _changes(texts: Mapping[str, Column], t: Thresholds, scale: Scale) -> dict[str, str]:
    """Say how many answers change under other weights, and how far the predictions move."""
    means = {
        name: float(np.mean(x[np.isfinite(x)])) for name, x in texts.items() if np.isfinite(x).any()
    }
    imposed = {
        "if the weights are shuffled among the words": "flipped",
        "if all words get the same weight": "uniform_flipped",
        "if the words with the most and the least weight change places": "moved_flipped",
    }
    shares = {intervention: means[name] for intervention, name in imposed.items() if name in means}
    if "mean_tvd" not in means:
        return {}
    if scale.unit is not None:  # no number is another class
        shares = {}
    said = "; ".join(
        f"{intervention}, {share:.0%}{' of the answers change' * (i == 0)}"
        for i, (intervention, share) in enumerate(shares.items())
    )
    moved = means["mean_tvd"]
    matter = "so the weights matter" if moved >= t.weights else "so the weights hardly matter"
    if shares and moved >= t.weights and max(shares.values()) < FEW_CHANGES:
        matter = "so the weights matter for how sure the answers are, if not for which they are"
    sentence = (
        f"Shuffles move {scale.moved.format(number(moved))} on average, where {t.weights:g} counts as enough: "
        f"{matter}."
    )
    return {"permutation": f"{said[0].upper()}{said[1:]}. {sentence}" if said else sentence}


def by_class(
    said: Answer, numbers: MapNumbers, t: Thresholds, names: Sequence[str]
) -> tuple[str, ...]:
    """Say what the map is for each predicted class and by which numbers, where the classes differ."""
    judged = _judged(numbers, t)
    is_told = said == "in part" and len(_parts(judged)) > 1

    def line(verdict: ClassAnswer, classes: Sequence[ClassNumbers]) -> str:
        whom, by = f"T{named(classes, names)[1:]}", _class_numbers(classes)
        if is_told and verdict not in NOT_JUDGED:
            return f"{whom}: {by}."
        return f"{whom}: {_said_of(verdict, classes, t)} ({by})."

    return tuple(line(verdict, classes) for verdict, classes in judged.items() if len(judged) > 1)


def _class_numbers(classes: Sequence[ClassNumbers]) -> str:
    """Return what is gone and what stays of the texts of some classes, as shares of their lead."""
    lead = np.array([x.lead * x.n for x in classes])

    def share(name: str) -> str:
        return _part(share_of_lead(np.array([getattr(x, name) for x in classes]) * lead, lead))

    return (
        f"its first words take {share('gone')} of the lead, the best words known {share('best_gone')}; left "
        f"alone, the highlighted words keep {share('alone')}"
    )
