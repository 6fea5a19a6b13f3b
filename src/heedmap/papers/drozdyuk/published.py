"""Drozdyuk et al.'s Table 1, and which of our interventions its rows are.

Published numbers are of "Is Sparse Attention a Better Explanation?", Table 1, single runs of a
softmax and a 1.5-entmax transformer ("entmax" means 1.5-entmax throughout). Corrected here:

* "random-K reduces accuracy to 31.45 %" (text) is a drop of 31.45 points, to 53.6 % (table).
* The rank inequality of eq. 3 is printed "<"; equality is possible, so it is "≤". Sparsemax is an argmin.
* The text calls entmax "more resistant to change" and reads its bigger drops as a better explanation. We
  follow the definition it uses: weights explain an output if changing them changes the output.
* No distances are printed ("completely different"), no seeds, no controls: here every row has distances,
  and uniform attention, a fitted temperature and the majority class are added.
* 82 % under "opposite" counts flipped labels: it is the attack's success.
"""

from heedmap.papers.kit.sources import Source

SOURCES = {
    "PUBLISHED": Source("paper", "Table 1"),
    "PLACE": Source("paper", "Table 1"),
    "GIVEN": Source("paper", "the text"),
}
# (row, softmax, 1.5-entmax): accuracy in per cent; opposite against flipped labels.
PUBLISHED: tuple[tuple[str, float, float], ...] = (
    ("original", 86.45, 85.05),
    ("change of activation", 79.23, 69.49),
    ("adversarial", 83.5, 81.9),
    ("shuffling", 79.4, 58.3),
    ("random-K", 74.9, 53.6),
    ("opposite", 82.1, 82.5),
)
SOURCE = "Drozdyuk et al., Table 1, one run"
# Columns of the published table: 1.5-entmax is its "entmax"; it has no sparsemax.
PLACE = {"softmax": 1, "entmax15": 2}
# The settings that the paper gives: name in words, and value.
GIVEN = {
    "learning_rate": ("learning rate", 1e-4),
    "adversary_hidden": ("hidden size of the adversaries", 256),
}


def drop(name: str) -> list[float]:
    """Return how many points a row of Table 1 loses, by activation."""
    rows = {row: values for row, *values in PUBLISHED}
    return [
        original_accuracy - accuracy
        for original_accuracy, accuracy in zip(rows["original"], rows[name], strict=True)
    ]


def intervention_of(published: str, activation: str) -> str:
    """Return which of our interventions a published row is, for a model trained with an activation."""
    change = "activation:entmax15" if activation == "softmax" else "activation:softmax"
    return {
        "original": "original",
        "change of activation": change,
        "adversarial": "adversarial",
        "shuffling": "shuffle:positions",
        "random-K": "random_k",
        "opposite": "opposite",
    }.get(published, published)
