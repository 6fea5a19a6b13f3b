"""Where an intervention puts a text's attention: on words that speak for a class, on the model's own words.

A lexicon says which class each word speaks for: 1 for class 1, −1 for class 0, 0 for neither. The paper has
none, it looks at pictures.

* log_odds: the sign of the word's coefficient in the L1 logistic regression of the training texts
  (see `heedmap.training.log_odds`), which drops most words;
* read_alone: the model's own log-odds of a word, z(w) = logit₁ − logit₀ of the text that is w alone, less the
  median over the vocabulary; the tenth of the words with the largest |z| speak;
* marked: what people marked in the training texts, where they did. A word speaks for a class if it is marked
  in most of its occurrences in texts of that class, and of that class alone. In SST the marks are the
  treebank's labels of single words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import EOS, SOS, SPECIAL, Vocabulary
from heedmap.errors import InputError
from heedmap.huggingface.recording import Recorder
from heedmap.papers.drozdyuk.model import ProbedClassifier, Texts, all_logits, lower
from heedmap.training.log_odds import fit_log_odds

LEXICONS = ("log_odds", "read_alone", "marked")
MEASURES = (*(f"{name}_{kind}" for name in LEXICONS for kind in ("mass", "other_mass")), "overlap")
SPEAKING = Fraction(1, 10)  # of the vocabulary speak for a class when read alone
TOP = 10  # the overlap is of a text's top words, one per ten words, rounded up
SHOWN_WORDS = range(4, 11)  # words of a text that is drawn
LONGEST = 50  # characters, so that it fits a line of a figure

Lexicon = Int[Tensor, " V"]


@dataclass(frozen=True)
class Focus:
    """What the focus is measured with: lexicons by name, and the tokens of the texts that are drawn, by row."""

    lexicons: Mapping[str, Lexicon] = field(default_factory=dict)
    drawn: Mapping[int, list[str]] = field(default_factory=dict)
    classes: Sequence[str] = ()


def focus_for(
    corpus: Corpus, train: Split, test: Split, vocabulary: Vocabulary
) -> tuple[Focus, list[str]]:
    """Fit the lexicon of the training texts and choose the drawn ones; return notes on what is left out."""
    drawn = drawn_texts(test, vocabulary, len(corpus.classes))
    notes = []
    if not drawn:
        sizes = f"{SHOWN_WORDS.start} to {SHOWN_WORDS.stop - 1}"
        notes.append(f"No heat maps of texts: no test text has {sizes} words that fit a line.")
    lexicons = {}
    try:
        words = replace(corpus, splits={"train": replace(train, tokens=lower(train))})
        coefficients = fit_log_odds(words, vocabulary).coefficients
        lexicons["log_odds"] = coefficients.nan_to_num(0.0).sign().long()
    except InputError as error:
        notes.append(f"The attention is not compared with log-odds: {error}.")
    if lexicons and (marked := marked_lexicon(train, vocabulary)) is not None:
        lexicons["marked"] = marked
    return Focus(lexicons, drawn, corpus.classes), notes


def drawn_texts(test: Split, vocabulary: Vocabulary, classes: int) -> dict[int, list[str]]:
    """Return a test text of each class as the model reads it; [ ] are marks.

    It is the first that fits a line and has no unknown word, or else the first that fits a line.
    """
    fitting: list[list[tuple[bool, int, list[str]]]] = [[] for _ in range(classes)]
    for row, words in enumerate(lower(test)):
        read = ["[", *(word if word in vocabulary else "<unk>" for word in words), "]"]
        if len(words) in SHOWN_WORDS and len(" ".join(read)) <= LONGEST:
            fitting[test.labels[row]].append(("<unk>" in read, row, read))
    return {row: read for texts in fitting if texts for _, row, read in [min(texts)]}


def marked_lexicon(train: Split, vocabulary: Vocabulary) -> Lexicon | None:
    """Return the lexicon of the words that people marked in texts of two classes; None without marks."""
    if train.rationale is None:
        return None
    counts = np.zeros((2, 2, len(vocabulary)), dtype=np.int64)  # not marked or marked, class, word
    for words, marks, label in zip(lower(train), train.rationale, train.labels, strict=True):
        np.add.at(counts, (marks.astype(int), label, vocabulary.encode(words)[1:-1]), 1)
    speaks = counts[1] > counts[0]
    lexicon = speaks[1].astype(np.int64) - speaks[0].astype(np.int64)
    lexicon[: len(SPECIAL)] = 0
    return torch.from_numpy(lexicon)


def read_alone(subject: ProbedClassifier, words: int) -> Lexicon:
    """Return the lexicon of a classifier of two classes: how it reads each of its words alone."""
    numbers = np.arange(len(SPECIAL), words)
    texts = Texts([np.array([SOS, n, EOS]) for n in numbers], np.zeros(len(numbers), np.int64))
    logits = all_logits(subject, texts).double()
    z = logits[:, 1] - logits[:, 0]
    z = z - z.median()
    lexicon = torch.zeros(words, dtype=torch.long)
    speaking = z.abs().argsort(descending=True, stable=True)[: int(len(z) * SPEAKING)]
    lexicon[len(SPECIAL) + speaking] = z[speaking].sign().long()
    return lexicon


def received(recorder: Recorder, mask: Bool[Tensor, "B N"]) -> Float[Tensor, "layers B N"]:
    """Return the weight that each position receives per layer: the mean over heads and real query rows."""
    rows = mask.double()
    means = [
        torch.einsum("bhqn,bq->bn", weights.double(), rows)
        / (weights.shape[1] * rows.sum(1, keepdim=True))
        for weights in recorder.seen_weights.values()
    ]
    return torch.stack(means)


def top_words(
    weight: Float[Tensor, "B N"], words: Bool[Tensor, "B N"]
) -> tuple[Float[Tensor, "B N"], Int[Tensor, " B"]]:
    """Return each word's probability to be among its text's k top words, ties drawn by lot, and k."""
    k = (words.sum(1) + TOP - 1) // TOP
    inside = weight.masked_fill(~words, -1.0)
    order = inside.sort(dim=1, descending=True).values
    edge = order.gather(1, (k - 1).clamp(min=0)[:, None])
    above = words & (inside > edge)
    tied = words & (inside == edge)
    by_lot = (k - above.sum(1)).double() / tied.sum(1).clamp(min=1)
    return above.double() + tied * by_lot[:, None], k


def overlap(
    own: Float[Tensor, "B N"], changed: Float[Tensor, "B N"], words: Bool[Tensor, "B N"]
) -> Float[Tensor, " B"]:
    """Return the expected share of the k top words that two maps have in common; NaN without a word.

    Ties are drawn by lot for either map, so that equal weights give exactly chance: k over the words.
    """
    own_top, k = top_words(own, words)
    changed_top, _ = top_words(changed, words)
    return (own_top * changed_top).sum(1) / k


def measures(
    own: Float[Tensor, "B N"],
    changed: Float[Tensor, "B N"],
    ids: Int[Tensor, "B N"],
    predicted: Int[Tensor, " B"],
    lexicons: Mapping[str, Lexicon],
) -> Float[Tensor, "measures B"]:
    """Return `MEASURES` of each text; NaN for those of a lexicon that there is not.

    mass is the weight on words that speak for a class, other_mass on those that speak for the class that the
    model, left alone, does not predict. Under uniform attention they are the words' shares of the tokens.
    """
    words = (ids >= len(SPECIAL)) | (ids == SPECIAL.index("<unk>"))
    rows = []
    for name in LEXICONS:
        if name not in lexicons:
            rows += [torch.full((len(ids),), torch.nan, dtype=torch.float64)] * 2
            continue
        speaks = lexicons[name].to(ids.device)[ids]
        wanted = 1 - 2 * predicted[:, None]  # predicted 1: words of class 0, which are −1
        rows += [(changed * (speaks != 0)).sum(1), (changed * (speaks == wanted)).sum(1)]
    return torch.stack([*rows, overlap(own, changed, words)]).cpu()
