"""The tables of Lu et al.: how well they translate, and what each map shows, by layer."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from heedmap.papers.kit.result import Result, Table
from heedmap.papers.lu.claims import claims
from heedmap.papers.lu.figures import figures
from heedmap.papers.lu.measures import MEAN, SENTENCES, SHUFFLES, largest_change
from heedmap.papers.lu.numbers import CHOICES, MAPS, Lu

BASELINES = {
    "diagonal": "the diagonal",
    "random": "a random source word (expected)",
    "best possible": "one link for each word, at best",
}
METHOD = """Method: the mean of a masked row is over real source positions, where the released code counts \
padding; the epoch with the best accuracy on dev is kept."""
COLUMNS = {
    "fusion": "how calibrated weights are used; none: a translator without calibration",
    "seed": "of the training",
    "quantity": "what is measured",
    "map": "of which weights; empty where it is of the model",
    "layer": "decoder layer, from 0; −1: the mean of all, or of the model",
    "value": "the number",
    "chance": "the same by chance: shuffled weights or masks, the commonest sub-word, 1 / S, other references",
    "ceiling": "the most that can be reached, where there is one; for leave-one-out another way to leave out",
    "n": "sentences, or weight rows or target positions where the number is defined",
    "learned": "whether the model has learned; empty where it cannot be told",
}


def result(lu: Lu) -> Result:
    """Make the result that all files of a reproduction show."""
    return lu.make_result(
        f"Lu et al.: attention calibration, {lu.name}",
        [
            _skill_table(lu),
            *claims(lu),
            *(_alignment_table(lu, choice) for choice in lu.choices),
            *([_change_table(lu)] if lu.maps("JSD") else []),
            _leave_one_out_table(lu),
            _end_table(lu),
            _end_change_table(lu),
        ],
        figures=figures(lu),
        notes=[METHOD],
        rows=pd.DataFrame(
            [{**row, "learned": lu.learned.of(row["fusion"], row["seed"])} for row in lu.rows],
            columns=[*COLUMNS],
        ),
        columns=COLUMNS,
    )


def _skill_table(lu: Lu) -> Table:
    def number(quantity: str, column: str = "value", digits: int = 3) -> Callable[[str], str]:
        return lambda fusion: lu.shown(quantity, fusion, column=column, digits=digits)

    return Table.of(
        "How well do they translate?",
        lu.fusions,
        {
            "fusion": lambda fusion: lu.learned.marked(fusion, fusion),
            "BLEU": number("BLEU", digits=1),
            "BLEU, others' references": number("BLEU", "chance", 1),
            "next sub-word": number("accuracy"),
            "the commonest": number("accuracy", "chance"),
            "uniform attention": number("accuracy, uniform"),
            "cross entropy": number("cross entropy"),
            "perturbed": number("cross entropy, perturbed"),
            "shuffled masks": number("cross entropy, perturbed", "chance"),
            "all masked": number("cross entropy, perturbed", "ceiling"),
            "sum of a row": number("row sum"),
        },
        f"BLEU of the first {lu.settings.bleu_pairs} test sentences, beam {lu.settings.beams}, by sacrebleu "
        "without tokenisation of its own; the same translations against the references of other sentences of "
        "like length. The next sub-word, given the right ones before it: test accuracy and cross entropy, as "
        "trained, with uniform cross-attention in all layers, and in the perturbed pass, beside its masks "
        "shuffled over the source and everything masked. The sum of a row is of the fused weights; even ones "
        "keep it. Means and 95 % intervals over seeds.",
    )


def _by_layer(
    lu: Lu, title: str, quantity: str, note: str, chance: str, ceiling: str = ""
) -> Table:
    """Return a table with a line per fusion and map, and a column per layer."""

    def number(layer: int, column: str, key: tuple[str, str]) -> str:
        fusion, map = key
        return lu.shown(quantity, fusion, map, layer, column)

    layers = {f"layer {layer + 1}": layer for layer in range(lu.settings.layers)}
    return Table.of(
        title,
        lu.maps(quantity),
        {
            "fusion": lambda key: lu.learned.marked(key[0], key[0]),
            "weights": lambda key: MAPS[key[1]],
            **{head: partial(number, layer, "value") for head, layer in layers.items()},
            "mean of layers": partial(number, MEAN, "value"),
            chance: partial(number, MEAN, "chance"),
            **({ceiling: partial(number, MEAN, "ceiling")} if ceiling else {}),
        },
        note,
        labels=2,
    )


def _alignment_table(lu: Lu, choice: str) -> Table:
    quantity = f"AER {choice}"
    baselines = "; ".join(
        f"{words} {lu.shown(quantity, lu.fusions[0], name, column='mean')}"
        for name, words in BASELINES.items()
    )
    return _by_layer(
        lu,
        f"Do they link the words that are each other's translation? {CHOICES[choice]}",
        quantity,
        "Alignment error rate of each target word's best source word: 1 − (|A∩S| + |A∩P|) / (|A| + |S|), lower "
        f"is better. Baselines: {baselines}. Sub-words are joined to words, heads are averaged. Shuffled: the "
        "mean of layers, each target position's weights in another order over the source.",
        "shuffled",
        "at best",
    )


def _change_table(lu: Lu) -> Table:
    keys = [
        (fusion, layer) for fusion, map in lu.maps("JSD") for layer in range(lu.settings.layers)
    ]

    def number(quantity: str, map: str, column: str, key: tuple[str, int]) -> str:
        fusion, layer = key
        return lu.shown(quantity, fusion, map, layer, column)

    columns = {
        "entropy of a": ("entropy", "attention", "value"),
        "of a_c": ("entropy", "calibrated", "value"),
        "uniform": ("entropy", "attention", "ceiling"),
        "a_c by shuffled masks − a": ("entropy gained", "calibrated", "chance"),
        "JSD of a and a_c": ("JSD", "calibrated", "value"),
        "JSD, shuffled masks": ("JSD", "calibrated", "chance"),
        "τ of entropy and JSD": ("entropy and JSD, τ", "calibrated", "value"),
        "τ, shuffled masks": ("entropy and JSD, τ", "calibrated", "chance"),
    }
    return Table.of(
        "What does calibration change?",
        keys,
        {
            "fusion": lambda key: lu.learned.marked(key[0], key[0]),
            "layer": lambda key: str(key[1] + 1),
            **{head: partial(number, *spec) for head, spec in columns.items()},
        },
        f"Nats, means over the rows of all heads of {SENTENCES} test sentences; a_c is scaled to sum to 1. A "
        f"factor from 1 to e can move weights by a JSD of {largest_change():.3f} at most (of ln 2 = .693), and "
        "peaked weights by less: so τ can be above 0 for masks in any order.",
        labels=2,
    )


def _leave_one_out_table(lu: Lu) -> Table:
    return _by_layer(
        lu,
        "Do they show which source words the next sub-word rests on?",
        "leave-one-out, τ",
        "Kendall's τ, over the source words, of a map and of the change of the next sub-word's distribution "
        f"(TVD) when a word is removed from the source; {SENTENCES} test sentences, all target positions where "
        f"τ is defined (n in result.csv). Shuffled: mean of {SHUFFLES} orders of the sub-words; a word of more "
        "sub-words gets more of any weights, and its removal changes more, so that this need not be 0. The "
        "other way: the word is read and gets no cross-attention; its τ with the first way is what to compare "
        "with.",
        "shuffled",
        "leave-one-out, the other way",
    )


def _end_table(lu: Lu) -> Table:
    return _by_layer(
        lu,
        "How much attention is on the end of the sentence?",
        "end",
        f"The weight on the source's end mark, which is no word; {SENTENCES} test sentences, all target "
        "positions. Uniform weights, and shuffled ones on average, have 1 / S there.",
        "1 / S",
    )


def _end_change_table(lu: Lu) -> Table:
    return Table.of(
        "What changes without the end of the source?",
        lu.fusions,
        {
            "fusion": lambda fusion: lu.learned.marked(fusion, fusion),
            "without the end": lambda fusion: lu.shown("change without the end", fusion),
            "without a word": lambda fusion: lu.shown(
                "change without the end", fusion, column="chance"
            ),
        },
        "Change of the next sub-word's distribution (TVD) when the end mark, or a word of the source (mean of "
        "all), is removed and the rest read again.",
    )
