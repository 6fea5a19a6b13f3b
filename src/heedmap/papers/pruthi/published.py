"""Pruthi et al.'s results: accuracy and attention to impermissible words or positions, in per cent.

The authors' values as the ReScience replication reprints them, and the replication's own, five seeds with the
authors' code. "<1e-6" and the like are upper bounds.
"""

from typing import NamedTuple

from heedmap.papers.kit.sources import Source

_PLACE = "ReScience replication, doi 10.5281/zenodo.4834146"
_CODE = Source("released code", "danishpruthi/deceptive-attention 8c8823ef")
SOURCES = {
    "AUTHORS": Source("reprint", _PLACE),
    "REPLICATED": Source("replication", _PLACE),
    "EPOCHS": _CODE,
    "SEEDS": _CODE,
    "SEQUENCES": Source("reprint", _PLACE),
    "SEQUENCES_REPLICATED": Source("replication", _PLACE),
}


class Published(NamedTuple):
    """Accuracy, and attention mass where it is given."""

    accuracy: str
    mass: str = "–"


SOURCE = "Pruthi et al."
REPLICATION = "replication, five seeds"
# (task, model, λ); None for λ: without the impermissible words.
AUTHORS: dict[tuple[str, str, float | None], Published] = {
    ("occupation", "embedding", None): Published("93.8"),
    ("occupation", "embedding", 0.0): Published("96.3", "51.4"),
    ("occupation", "embedding", 0.1): Published("96.2", "4.6"),
    ("occupation", "embedding", 1.0): Published("96.2", "1.3"),
    ("occupation", "bilstm", None): Published("93.3"),
    ("occupation", "bilstm", 0.0): Published("96.4", "50.3"),
    ("occupation", "bilstm", 0.1): Published("96.4", ".08"),
    ("occupation", "bilstm", 1.0): Published("96.7", "<1e-2"),
    ("pronoun", "embedding", None): Published("66.8"),
    ("pronoun", "embedding", 0.0): Published("100", "99.2"),
    ("pronoun", "embedding", 0.1): Published("99.4", "3.4"),
    ("pronoun", "embedding", 1.0): Published("99.2", ".8"),
    ("pronoun", "bilstm", None): Published("63.3"),
    ("pronoun", "bilstm", 0.0): Published("100", "96.8"),
    ("pronoun", "bilstm", 0.1): Published("100", "<1e-6"),
    ("pronoun", "bilstm", 1.0): Published("100", "<1e-6"),
    ("sst-filler", "embedding", None): Published("48.9"),
    ("sst-filler", "embedding", 0.0): Published("70.7", "48.4"),
    ("sst-filler", "embedding", 0.1): Published("67.9", "36.4"),
    ("sst-filler", "embedding", 1.0): Published("48.4", "8.7"),
    ("sst-filler", "bilstm", None): Published("49.1"),
    ("sst-filler", "bilstm", 0.0): Published("76.9", "77.7"),
    ("sst-filler", "bilstm", 0.1): Published("60.6", ".04"),
    ("sst-filler", "bilstm", 1.0): Published("61.0", ".07"),
    ("occupation", "bert-mean", None): Published("95.0"),
    ("occupation", "bert-mean", 0.0): Published("97.2", "13.9"),
    ("occupation", "bert-mean", 0.1): Published("97.2", ".001"),
    ("occupation", "bert-mean", 1.0): Published("97.2", "<1e-3"),
    ("occupation", "bert-max", 0.0): Published("97.2", "99.7"),
    ("occupation", "bert-max", 0.1): Published("97.1", "<1e-3"),
    ("occupation", "bert-max", 1.0): Published("97.4", "<1e-3"),
    ("pronoun", "bert-mean", None): Published("72.8"),
    ("pronoun", "bert-mean", 0.0): Published("100", "80.8"),
    ("pronoun", "bert-mean", 0.1): Published("99.9", "<1e-3"),
    ("pronoun", "bert-mean", 1.0): Published("99.9", "<1e-3"),
    ("pronoun", "bert-max", 0.0): Published("100", "99.7"),
    ("pronoun", "bert-max", 0.1): Published("99.9", "<1e-3"),
    ("pronoun", "bert-max", 1.0): Published("99.8", "<1e-4"),
    ("sst-filler", "bert-mean", None): Published("50.4"),
    ("sst-filler", "bert-mean", 0.0): Published("90.8", "59.0"),
    ("sst-filler", "bert-mean", 0.1): Published("90.9", "<1e-2"),
    ("sst-filler", "bert-mean", 1.0): Published("90.6", "<1e-3"),
    ("sst-filler", "bert-max", 0.0): Published("90.8", "96.2"),
    ("sst-filler", "bert-max", 0.1): Published("90.7", "<1e-2"),
    ("sst-filler", "bert-max", 1.0): Published("90.2", "<1e-3"),
}
REPLICATED: dict[tuple[str, str, float | None], Published] = {
    ("occupation", "embedding", 0.0): Published("96.5", "56.4"),
    ("occupation", "embedding", 0.1): Published("96.3", "5.7"),
    ("occupation", "embedding", 1.0): Published("96.1", "1.5"),
    ("pronoun", "embedding", 0.0): Published("99.9", "90.1"),
    ("pronoun", "embedding", 0.1): Published("–", "8.8"),
    ("pronoun", "embedding", 1.0): Published("–", "4.6"),
    ("sst-filler", "embedding", 0.0): Published("68.1 ± 1.6", "49.9 ± 2.2"),
    ("sst-filler", "embedding", 0.1): Published("69.5 ± 1.4", "17 ± 1"),
    ("sst-filler", "embedding", 1.0): Published("51.8 ± 1.1", "12.9 ± 2"),
    ("sst-filler", "bilstm", 0.0): Published("76.4 ± .8", "81.5 ± 7.5"),
    ("sst-filler", "bilstm", 0.1): Published("65.1 ± 4", ".99 ± 1.3"),
    ("sst-filler", "bilstm", 1.0): Published("64.9 ± 3.1", ".035 ± .02"),
}
EPOCHS = {"occupation": 5}  # of others 15
SEEDS = 5
# The sequence tasks: (task, attention, λ); accuracy, or BLEU by compare-mt for translation (English to German).
SEQUENCES: dict[tuple[str, str, float], Published] = {
    ("bigram-flip", "learned", 0.0): Published("100", "94.5"),
    ("bigram-flip", "uniform", 0.0): Published("97.8", "5.2"),
    ("bigram-flip", "none", 0.0): Published("96.4"),
    ("bigram-flip", "learned", 0.1): Published("99.9", "24.4"),
    ("bigram-flip", "learned", 1.0): Published("99.8", ".03"),
    ("copy", "learned", 0.0): Published("99.9", "98.8"),
    ("copy", "uniform", 0.0): Published("93.8", "5.2"),
    ("copy", "none", 0.0): Published("84.1"),
    ("copy", "learned", 0.1): Published("100", "27.3"),
    ("copy", "learned", 1.0): Published("92.9", ".02"),
    ("reverse", "learned", 0.0): Published("100", "94.1"),
    ("reverse", "uniform", 0.0): Published("88.1", "4.7"),
    ("reverse", "none", 0.0): Published("84.1"),
    ("reverse", "learned", 0.1): Published("100", "27.6"),
    ("reverse", "learned", 1.0): Published("99.8", ".01"),
    ("translation", "learned", 0.0): Published("24.42", "20.66"),
    ("translation", "uniform", 0.0): Published("18.49", "5.96"),
    ("translation", "none", 0.0): Published("14.89"),
    ("translation", "learned", 0.1): Published("23.69", "7.02"),
    ("translation", "learned", 1.0): Published("20.66", "1.16"),
}
SEQUENCES_REPLICATED: dict[tuple[str, str, float], Published] = {
    ("bigram-flip", "learned", 0.0): Published("–", "93.9"),
    ("bigram-flip", "uniform", 0.0): Published("95.1", "4.71"),
    ("bigram-flip", "none", 0.0): Published("96.4"),
    ("bigram-flip", "learned", 0.1): Published("100", "15.2"),
    ("bigram-flip", "learned", 1.0): Published("99.6", ".01"),
    ("copy", "learned", 0.0): Published("100", "94.1"),
    ("copy", "uniform", 0.0): Published("79.3", "4.73"),
    ("copy", "none", 0.0): Published("87.3"),
    ("copy", "learned", 0.1): Published("100", "10.7"),
    ("copy", "learned", 1.0): Published("99.9", ".014"),
    ("reverse", "learned", 0.0): Published("100", "94.0"),
    ("reverse", "uniform", 0.0): Published("80.8", "7.74"),
    ("reverse", "none", 0.0): Published("87.2"),
    ("reverse", "learned", 0.1): Published("–", "16.3"),
    ("reverse", "learned", 1.0): Published("99.9", ".014"),
    ("translation", "learned", 0.0): Published("24.89", "24.52"),
    ("translation", "uniform", 0.0): Published("18.37", "5.96"),
    ("translation", "none", 0.0): Published("15.88"),
    ("translation", "learned", 0.1): Published("24.30", "16.77"),
    ("translation", "learned", 1.0): Published("21.07", "1.40"),
}
