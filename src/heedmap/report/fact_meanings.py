"""What the numbers of a text mean, which the table of all texts offers as columns."""

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "importance under the map, by leave-one-out": (
        "The share of the leave-one-out importance that lies under the map, from 0 to 1."
    ),
    "τ with ": (
        "Kendall's τ-b of the map with this measure: 1 is the same order of the words, −1 the reverse order."
    ),
    "mass on words against the answer": (
        "The share of the attention on words without which the answer would be likelier, from 0 to 1."
    ),
    "median TVD, shuffled": (
        "How far the prediction moves (TVD, 0 to 1) if the weights are shuffled among the words: the median of "
        "the shuffles."
    ),
    "label": "The number in the data that the model is to give.",
    "median change of the output, shuffled": (
        "How far the output moves, in its unit, if the weights are shuffled among the words: the median of the "
        "shuffles."
    ),
    "change of the output, even weights": (
        "How far the output moves, in its unit, if all words get the same weight."
    ),
    "change without the map's first words": (
        "How far the output moves at most, in its unit, if the model reads the text without the map's first "
        "words, up to a third of them."
    ),
    "change with the highlighted words alone": (
        "How far the output moves, in its unit, if the model reads the highlighted words alone."
    ),
    "TVD, even weights": "How far the prediction moves (TVD, 0 to 1) if all words get the same weight.",
    "JSD, most attended word erased": (
        "How far the prediction moves (Jensen–Shannon divergence, 0 to 0.69) without the weight of the most "
        "attended word."
    ),
    "words that matter less when erased": (
        "The share of the other words whose erasure moves the prediction less than that of the most "
        "attended one."
    ),
    "words erased until the answer changes": (
        "How many words lose their weight, in the order of the map, before the answer changes."
    ),
    "the fewest that change it": "The fewest words that change the answer when they lose their weight.",
    "largest JSD, at least": (
        "The divergence (JSD, 0 to 0.69) from this map of the most different one that was found with the same "
        "prediction."
    ),
    "largest JSD": (
        "The divergence (JSD, 0 to 0.69) of the most different map with the same prediction from this map."
    ),
    "at most": "The divergence (JSD) that no other map with the same prediction exceeds.",
    "dimensions of freedom, same output": (
        "In how many directions the weights can change while the output stays exactly the same."
    ),
    "mass to move for another answer": (
        "The least share of the weight that must move to other words for the answer to change, from 0 to 1."
    ),
    "share of all weightings with this prediction": (
        "The share of all possible weights for this text that give the same prediction, from 0 to 1."
    ),
    "ROC AUC of attention": (
        "How well the map ranks the words that people marked above the others: 1 is perfect, 0.5 is chance."
    ),
    "AUPRC of attention": (
        "How well the first words of the map are those that people marked (average precision): 1 is perfect."
    ),
    "comprehensiveness": (
        "How much of the answer's probability is lost without the first words of the map; large is good."
    ),
    "sufficiency": (
        "How much of the answer's probability is lost with the first words of the map alone; small is good."
    ),
    "JSD from the maps of other seeds": (
        "The mean divergence (JSD, 0 to 0.69) of this map from those of the same model with other "
        "training seeds."
    ),
}
"""By the beginning of a number's name."""


def meaning_of(name: str) -> str:
    """Say what a number of a text means; the numbers of other packages' questions are told by their names.

    >>> meaning_of("TVD, even weights")
    'How far the prediction moves (TVD, 0 to 1) if all words get the same weight.'
    """
    return next(
        (meaning for begins, meaning in MEANINGS.items() if name.startswith(begins)),
        "A number of one of the questions.",
    )
