"""The numbers of Snell et al.'s account of a translator's attention, beside theirs."""

import math
from dataclasses import dataclass
from functools import cached_property

from heedmap.data.pieces import Pieces
from heedmap.experiments.seeds import over_seeds, seed_mean
from heedmap.papers.kit.result import Result, Table, changed_settings
from heedmap.papers.kit.translators import PIECES
from heedmap.papers.snell.attraction import Compared
from heedmap.papers.snell.classification_result import account
from heedmap.papers.snell.per_position import EPSILON, PERMUTATIONS, SENTENCES
from heedmap.papers.snell.published import PERFORMANCE
from heedmap.papers.snell.settings import TranslationSettings
from heedmap.papers.snell.translation_task import RECORDED
from heedmap.report.wording import plural

WORDS = {
    "vocabulary": "{} sub-words",
    "size": "{} units in each direction and in a word vector",
    "layers": "{} layer(s)",
    "dropout": "{} as dropout",
    "batch_size": "{} sentences in a batch",
    "learning_rate": "{} as learning rate",
    "epochs": "{} epochs",
}
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
class Translation(Compared[TranslationSettings]):
    """What was read off the translators."""

    @property
    def dataset(self) -> str:
        """The name under which published numbers are found."""
        pair = (self.settings.source, self.settings.target)
        return self.settings.dataset or "" if pair == ("de", "en") else ""

    @cached_property
    def classes(self) -> list[str]:
        """What labels are called: the sub-words by number."""
        pieces = Pieces.read(self.folder / PIECES)
        return [pieces.token(number) for number in range(len(pieces))]

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

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper's settings."""
        settings = self.settings
        pairs = settings.train_pairs
        return [
            *changed_settings(settings, WORDS),
            *([] if pairs is None else [f"at most {pairs} pairs to train on"]),
            f"{plural(settings.seeds, 'model')} and {plural(settings.seeds, 'twin')} instead of 2 and 1",
            f"{RECORDED} sentences are compared",
            "byte pair encoding by tokenizers instead of sentencepiece",
            "gradients clipped",
        ]


def result(translation: Translation) -> Result:
    """Make the result that all files of this part show."""
    aligned = _alignment_table(translation)
    return account(
        translation,
        f"Snell et al.: where a translator's attention comes from, {translation.name}",
        [
            _skill_table(translation),
            *([aligned] if aligned.lines else []),
            _positions_table(translation),
        ],
    )


def _skill_table(translation: Translation) -> Table:
    kinds = {"learned": ("learned attention", "models"), "uniform": ("uniform attention", "twins")}
    published = f"{PERFORMANCE['accuracy']:.3f}"
    return Table.of(
        "How well do they translate?",
        kinds,
        {
            "attention": lambda kind: translation.learned.marked(*kinds[kind]),
            "next sub-word": lambda kind: over_seeds(
                translation.values(f"accuracy {kind}", "final")
            ),
            "published": lambda kind: (
                published if translation.dataset and kind == "learned" else "–"
            ),
            "BLEU, by sacrebleu": lambda kind: seed_mean(
                translation.values(f"BLEU {kind}", "final"), 1
            ),
        },
        f"The next sub-word, given the right ones before it: test accuracy. BLEU of the first "
        f"{translation.settings.bleu_pairs} test sentences, beam {translation.settings.beams}, by sacrebleu "
        "without tokenisation of its own. The published BLEU is another scorer's and does not stand beside it.",
    )


def _alignment_table(translation: Translation) -> Table:
    heads = {"automatic": "automatic links, test", "people": "people's links"}
    choices = [choice for choice in heads if translation.values("AER attention", choice)]
    lines = [
        [
            words,
            *(over_seeds(translation.values(f"AER {name}", choice)) for choice in choices),
        ]
        for name, words in MAPS.items()
        if choices
    ]
    return Table(
        translation.learned.marked(
            "Do they link the words that are each other's translation?", *translation.accuracies
        ),
        ["each target word's best source word by", *(heads[choice] for choice in choices)],
        lines,
        "Alignment error rate: 1 − (|A∩S| + |A∩P|) / (|A| + |S|), A the links of the map, S the sure ones, P "
        "the possible ones; lower is better. Sub-words are joined to words. Means and intervals over seeds. A "
        "dictionary that recovers links without attention is what uniform attention can learn from.",
    )


def _positions_table(translation: Translation) -> Table:
    names = {
        "permuted, TVD": "change of the prediction, weights shuffled (median TVD)",
        "uniform, TVD": "change of the prediction, uniform weights (TVD)",
        "leave-one-out, τ": "Kendall's τ of attention and leave-one-out on the source",
        "adversary, JSD": f"most different weights within {EPSILON:g} of the prediction (JSD, by search)",
        "adversary, largest JSD": "most different weights, whatever the prediction (JSD)",
        "uniform, JSD": "uniform weights (JSD)",
    }
    return Table.of(
        translation.learned.marked("Is a target word's attention an explanation?", "models"),
        names,
        {
            "per target position": lambda name: names[name],
            "mean": lambda name: seed_mean(
                translation.values(name, "positions"), share="τ" not in name
            ),
        },
        f"All target positions of {SENTENCES} test sentences; {PERMUTATIONS} shuffles; a random order has a τ "
        "of 0.",
    )
