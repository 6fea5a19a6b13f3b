"""The numbers of Snell et al.'s account of a translator's attention, beside theirs."""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from heedmap.papers.kit.result import Result, Table, unlike, with_unlike
from heedmap.papers.snell.attraction import Compared
from heedmap.papers.snell.classification_figures import figures, toy
from heedmap.papers.snell.classification_result import (
    COLUMNS,
    above_chance,
    agreement_table,
    rise_table,
    rises_first,
    seed_mean,
    xi_table,
)
from heedmap.papers.snell.per_position import EPSILON, PERMUTATIONS, SENTENCES
from heedmap.papers.snell.published import PERFORMANCE
from heedmap.papers.snell.settings import TranslationSettings
from heedmap.papers.snell.translation_task import RECORDED
from heedmap.report.wording import plural

MAPS = {
    "attention": "attention",
    "relevance uniform": "relevance in the twin, log p(y | context := h_s)",
    "relevance learned": "relevance in the model itself",
    "linear uniform": "linear relevance in the twin, W h_s",
    "linear learned": "linear relevance in the model itself",
    "dictionary": "dictionary, by co-occurrence",
    "diagonal": "the diagonal",
    "random": "a random source word (expected)",
    "best possible": "one link for each word, at best",
}


@dataclass(frozen=True)
class Translation(Compared):
    """What was read off the translators; `symbols` are the sub-words by number."""

    symbols: list[str]
    settings: TranslationSettings

    @property
    def dataset(self) -> str:
        """The name under which published numbers are found."""
        pair = (self.settings.source, self.settings.target)
        return "multi30k" if "multi30k" in self.name.lower() and pair == ("de", "en") else ""

    @property
    def classes(self) -> list[str]:
        """What labels are called."""
        return self.symbols

    @property
    def of_words(self) -> bool:
        """Labels are target sub-words."""
        return True

    @property
    def accuracies(self) -> dict[str, tuple[list[float], float]]:
        """How often the next sub-word is right, of the test split."""
        published = PERFORMANCE["accuracy"] if self.dataset else math.nan
        return {
            "models": (self.values("accuracy learned", "final"), published),
            "twins": (self.values("accuracy uniform", "final"), math.nan),
        }


def result(found: Translation) -> Result:
    """Make the result that all files of this part show."""
    differs = differences(found)
    table = agreement_table(found)
    claims = [
        above_chance("The twin's relevance foretells the attention.", found, "uniform"),
        above_chance("The twin's relevance foretells the influence.", found, "influence"),
        rises_first(found),
    ]
    aligned = [one for one in (_alignment_table(found),) if one.lines]
    return Result(
        title=f"Snell et al.: where a translator's attention comes from, {found.name}",
        notes=[*found.notes, unlike(differs)],
        summary=table,
        sections=[
            table, xi_table(found), rise_table(found), _skill_table(found), *aligned,
            _positions_table(found),
            *(found.learned.judged(claim, *found.accuracies) for claim in claims),
        ],
        figures=[
            *(with_unlike(one, differs, found.learned.failed) for one in figures(found)),
            toy(),
        ],
        rows=pd.DataFrame(found.rows),
        latex=table,
        columns=COLUMNS,
        not_learned=found.learned.sentence(),
    )  # fmt: skip


def differences(found: Translation) -> list[str]:
    """List in words how a reproduction differs from the paper's settings."""
    settings, published = found.settings, TranslationSettings.model_fields
    words: dict[str, Any] = {
        "vocabulary": "sub-words",
        "size": "units in each direction and in a word vector",
        "layers": "layer(s)",
        "dropout": "as dropout",
        "batch_size": "sentences in a batch",
        "learning_rate": "as learning rate",
        "epochs": "epochs",
    }
    changed = [
        f"{getattr(settings, name):g} {text} instead of {published[name].default:g}"
        for name, text in words.items()
        if getattr(settings, name) != published[name].default
    ]
    if settings.train_pairs is not None:
        changed.append(f"at most {settings.train_pairs} pairs to train on")
    return [
        *changed,
        f"{plural(settings.seeds, 'model')} and {plural(settings.seeds, 'twin')} instead of 2 and 1",
        f"{RECORDED} sentences are compared",
        "byte pair encoding by tokenizers instead of sentencepiece",
        "gradients clipped",
    ]


def _skill_table(found: Translation) -> Table:
    lines = []
    for kind, words, of in (
        ("learned", "learned attention", "models"), ("uniform", "uniform attention", "twins"),
    ):  # fmt: skip
        lines.append(
            [
                found.learned.marked(words, of),
                seed_mean(found.values(f"accuracy {kind}", "final"), share=True),
                f"{PERFORMANCE['accuracy']:.3f}" if found.dataset and kind == "learned" else "–",
                seed_mean(found.values(f"BLEU {kind}", "final"), 1),
            ]
        )
    return Table(
        "How well do they translate?",
        ["attention", "next sub-word", "published", "BLEU, by sacrebleu"],
        lines,
        f"The next sub-word, given the right ones before it: test accuracy. BLEU of the first "
        f"{found.settings.bleu_pairs} test sentences, beam {found.settings.beams}, by sacrebleu without "
        "tokenisation of its own. The published BLEU is another scorer's and does not stand beside it.",
    )


def _alignment_table(found: Translation) -> Table:
    choices = [one for one in ("automatic", "people") if found.values("AER attention", one)]
    lines = [
        [words, *(seed_mean(found.values(f"AER {name}", one), share=True) for one in choices)]
        for name, words in MAPS.items()
        if choices
    ]
    heads = {"automatic": "automatic links, test", "people": "people's links"}
    return Table(
        found.learned.marked(
            "Do they link the words that are each other's translation?", *found.accuracies
        ),
        ["each target word's best source word by", *(heads[one] for one in choices)],
        lines,
        "Alignment error rate: 1 − (|A∩S| + |A∩P|) / (|A| + |S|), A the links of the map, S the sure ones, P "
        "the possible ones; lower is better. Sub-words are joined to words. Means and intervals over seeds. A "
        "dictionary that recovers links without attention is what uniform attention can learn from.",
    )


def _positions_table(found: Translation) -> Table:
    names = {
        "permuted, TVD": "change of the prediction, weights shuffled (median TVD)",
        "uniform, TVD": "change of the prediction, uniform weights (TVD)",
        "leave-one-out, τ": "Kendall's τ of attention and leave-one-out on the source",
        "adversary, JSD": f"most different weights within {EPSILON:g} of the prediction (JSD, by search)",
        "adversary, largest JSD": "most different weights, whatever the prediction (JSD)",
        "uniform, JSD": "uniform weights (JSD)",
    }
    return Table(
        found.learned.marked("Is a target word's attention an explanation?", "models"),
        ["per target position", "mean"],
        [
            [words, seed_mean(found.values(name, "positions"), share="τ" not in name)]
            for name, words in names.items()
        ],
        f"All target positions of {SENTENCES} test sentences; {PERMUTATIONS} shuffles; a random order has a τ "
        "of 0.",
    )
