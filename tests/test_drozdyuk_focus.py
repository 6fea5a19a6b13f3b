"""Where an intervention puts the weight: lexicons, measures, claims and figures, against slow versions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import small_corpus

from heedmap.data.vocabulary import SPECIAL, UNK, Vocabulary
from heedmap.huggingface.recording import Recorder
from heedmap.papers.drozdyuk.focus import (
    MEASURES,
    Focus,
    drawn_texts,
    focus_for,
    marked_lexicon,
    measures,
    overlap,
    read_alone,
    received,
)
from heedmap.papers.drozdyuk.focus_claims import focus_claims
from heedmap.papers.drozdyuk.model import ProbedClassifier
from heedmap.papers.kit.learned import Learned
from heedmap.report.activation_figures import activation_figures, first_weights
from heedmap.report.text_maps import TextMap, text_maps


def test_received_is_the_mean_over_heads_and_real_rows():
    generator = torch.Generator().manual_seed(0)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]]).bool()
    recorder = Recorder()
    for layer in range(2):
        weights = torch.rand(3, 2, 3, 3, generator=generator) * mask[:, None, None]
        recorder.seen_weights[layer] = weights / weights.sum(-1, keepdim=True)
    ours = received(recorder, mask)
    assert torch.allclose(ours.sum(-1), torch.ones(2, 3).double(), atol=1e-6)
    for layer, text, key in itertools.product(range(2), range(3), range(3)):
        n = int(mask[text].sum())
        values = [
            float(recorder.seen_weights[layer][text, head, query, key])
            for head in range(2)
            for query in range(n)
        ]
        assert float(ours[layer, text, key]) == pytest.approx(np.mean(values), abs=1e-6)


def slow_overlap(own, changed, k):
    """The mean over every order that breaks the ties of either map."""

    def tops(weights):
        best = {}
        for order in itertools.permutations(range(len(weights))):
            top = sorted(order, key=lambda i: -weights[i])[:k]
            best[order] = set(top)
        return list(best.values())

    return np.mean([len(a & b) / k for a in tops(own) for b in tops(changed)])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_overlap_is_expected_over_ties(n):
    rng = np.random.default_rng(n)
    own, changed = rng.integers(0, 3, (2, n)).astype(float)
    words = torch.tensor([[False, *[True] * n, False]])
    padded = [torch.tensor([[9.0, *map(float, w), 9.0]]).double() for w in (own, changed)]
    assert float(overlap(*padded, words)[0]) == pytest.approx(slow_overlap(own, changed, 1))


def test_equal_weights_overlap_by_chance_and_a_text_without_words_has_none():
    generator = torch.Generator().manual_seed(0)
    words = torch.ones(1, 25, dtype=torch.bool)
    own = torch.rand(1, 25, generator=generator).double()
    assert float(overlap(own, torch.full_like(own, 0.04), words)[0]) == pytest.approx(3 / 25)
    assert float(overlap(own, own, words)[0]) == 1
    assert torch.isnan(overlap(own, own, torch.zeros_like(words))).all()


def test_masses_are_counted_word_by_word():
    lexicon = torch.tensor([0, 0, 0, 0, 1, -1, 0, 1])
    ids = torch.tensor([[2, 4, 5, UNK, 7, 3], [2, 5, 6, 3, 0, 0]])
    weight = torch.tensor([[0.1, 0.2, 0.3, 0.1, 0.2, 0.1], [0.1, 0.6, 0.2, 0.1, 0, 0]]).double()
    values = dict(
        zip(
            MEASURES,
            measures(weight, weight, ids, torch.tensor([1, 0]), {"log_odds": lexicon}),
            strict=True,
        )
    )
    assert values["log_odds_mass"].tolist() == pytest.approx([0.7, 0.6])
    assert values["log_odds_other_mass"].tolist() == pytest.approx([0.3, 0.0])
    assert values["overlap"].tolist() == [1, 1]
    assert torch.isnan(values["marked_mass"]).all()


def test_marked_words_speak_for_the_class_in_whose_texts_they_are_marked():
    split = replace(
        small_corpus().splits["train"].take([0, 1, 2]),
        tokens=[["Good", "film"], ["bad", "film"], ["good", "bad"]],
        labels=np.array([1, 0, 1]),
        rationale=[np.array(m) for m in ([True, True], [True, False], [True, False])],
    )
    vocabulary = Vocabulary(["bad", "film", "good"])
    lexicon = marked_lexicon(split, vocabulary)
    assert lexicon.tolist() == [0, 0, 0, 0, -1, 1, 1]
    assert marked_lexicon(replace(split, rationale=None), vocabulary) is None


class Adder(torch.nn.Module):
    """A classifier whose log-odds of a text are the sum of its words' own."""

    def __init__(self, odds):
        super().__init__()
        self.odds = torch.nn.Parameter(torch.tensor(odds))

    def forward(self, input_ids, attention_mask):
        z = (self.odds[input_ids] * attention_mask).sum(1)
        return type("Output", (), {"logits": torch.stack([torch.zeros_like(z), z], 1)})


def test_words_read_alone_are_those_of_the_model_whose_truth_is_known(monkeypatch):
    odds = np.full(len(SPECIAL) + 20, 5.0, dtype=np.float32)  # an offset of all words
    odds[7], odds[9] = 8.0, -4.0
    monkeypatch.setattr(
        ProbedClassifier, "logits", lambda self, inputs, *args, **edits: self.model(**inputs).logits
    )
    lexicon = read_alone(ProbedClassifier(Adder(odds), "softmax", 2), len(odds))
    assert lexicon[7] == 1
    assert lexicon[9] == -1
    assert int(lexicon.abs().sum()) == 2


def test_drawn_texts_are_the_first_of_each_class_and_none_is_said():
    corpus = small_corpus()
    train, test = corpus.splits["train"], corpus.splits["test"]
    vocabulary = Vocabulary.build(train.tokens, 1)
    drawn = drawn_texts(test, vocabulary, 2)
    for row, tokens in drawn.items():
        assert tokens[0] == "["
        assert len(tokens) == len(test.tokens[row]) + 2
    assert [int(test.labels[row]) for row in drawn] == [0, 1]
    short = replace(test, tokens=[["a"]] * len(test))
    focus, notes = focus_for(corpus, train, short, vocabulary)
    assert isinstance(focus, Focus)
    assert "No heat maps of texts" in notes[0]


def rows_of(own, adversarial, opposite, random, first, seeds=3):
    """Rows of two activations, with a small step per seed; uniform is .1 everywhere."""
    values = {"original": own, "uniform": 0.1, "adversarial": adversarial, "opposite": opposite,
              "random_k": random}  # fmt: skip
    rows = []
    for activation, seed in itertools.product(("softmax", "entmax15"), range(seeds)):
        for name, value in values.items():
            shift = 0.0 if name == "uniform" else 0.001 * seed
            masses = dict.fromkeys(MEASURES, value + shift)
            rows.append({"activation": activation, "seed": seed, "intervention": name, "layers": "all",
                         **masses})  # fmt: skip
        for layer, drop in (("0", first), ("1", 0.1)):
            rows.append({"activation": activation, "seed": seed, "intervention": "shuffle:positions",
                         "layers": layer, "drop": drop + 0.001 * seed * (layer == "0")})  # fmt: skip
    return rows


@pytest.mark.parametrize(
    ("numbers", "verdicts"),
    [
        ((0.2, 0.4, 0.3, 0.3, 0.2), ["survives"] * 4),
        ((0.4, 0.2, 0.05, 0.0, 0.0), ["does not"] * 4),
        ((0.2, 0.2, 0.2, 0.1, 0.0995), ["undecided"] * 4),
    ],
)
def test_the_four_claims_follow_their_intervals(numbers, verdicts):
    own, adversarial, opposite, random, first = numbers
    rows = rows_of(own, adversarial, opposite, random, first)
    if verdicts[0] == "undecided":
        for row in rows:  # seeds that disagree
            sign = (-1) ** row["seed"] * 0.05
            if row["intervention"] != "uniform":
                for name in (*MEASURES, "drop"):
                    if (
                        name in row
                        and row.get("layers") != "1"
                        and row["intervention"] != "original"
                    ):
                        row[name] += sign
    claims = {claim.text.split()[0]: claim.verdict for claim in focus_claims(rows, Learned({}))}
    assert [claims[name] for name in ("First", "Shuffling") if name in claims] == [verdicts[0]]
    assert [claims[name] for name in ("Adversarial", "Random-K", "Opposite")] == verdicts[1:]


def test_one_seed_decides_nothing_and_no_rows_have_no_claims():
    claims = focus_claims(rows_of(0.2, 0.4, 0.3, 0.3, 0.2, seeds=1), Learned({}))
    assert {claim.verdict for claim in claims} == {"undecided"}
    assert focus_claims([], Learned({})) == []


def test_the_activations_are_drawn_as_they_are():
    scores = torch.tensor([[-2.0], [0.0], [0.5], [2.0]]).double()
    assert first_weights(scores, "sparsemax") == pytest.approx([0, 0.5, 0.75, 1])
    assert first_weights(scores, "softmax") == pytest.approx(
        (1 / (1 + (-scores[:, 0]).exp())).tolist()
    )
    three = first_weights(torch.tensor([[0.5, -2.0]]).double(), "entmax15")
    assert three == pytest.approx([0.6740], abs=1e-4)
    curve, maps = activation_figures()
    assert curve.key != maps.key


def test_a_lines_largest_weight_has_full_colour_and_no_weight_has_none():
    maps = [
        TextMap("own", ["a", "b"], [0.2, 0.4], "x", "softmax"),
        TextMap("zero", ["a"], [0.0], "y", "entmax15"),
        TextMap("again", ["a"], [0.5], "z", "softmax"),
    ]
    figure = text_maps(maps, "k", "t")
    boxes = [row for rows in figure.spec["datasets"].values() for row in rows if "token" in row]
    assert [box["strength"] for box in boxes] == [0.5, 1.0, 0.0, 1.0]
    assert [box["series"] for box in boxes] == ["softmax", "softmax", "entmax15", "softmax"]
    assert [key.label for key in figure.keys] == ["softmax", "entmax15"]
    # The second text stands apart from the first; its two maps do not.
    assert [box["y"] for box in boxes] == [0.5, 0.5, 2.0, 3.0]


def test_no_line_is_longer_than_what_fits_a_figure():
    tokens = [*(f"word{i:03}" for i in range(40)), "x" * 90]
    line = TextMap(
        "layer 1, " + "softmax, " * 8 + "unchanged", tokens, [1.0] * 41, "predicts 1", "s"
    )
    spec = text_maps([line, line], "k", "t").spec
    texts = [row for rows in spec["datasets"].values() for row in rows if "text" in row]
    boxes = [row for rows in spec["datasets"].values() for row in rows if "token" in row]
    assert [box["token"] for box in boxes] == tokens * 2
    domains = [layer["encoding"]["x"]["scale"]["domain"][1] for layer in spec["layer"]]
    assert domains == [56, 56], "characters of 6.6 pixels in the 370 of a narrow figure"
    assert all(row["x"] + len(row["text"]) <= 56.3 for row in texts)
    places = [(box["y"], box["x"]) for box in boxes]
    assert places == sorted({*places}), "none lies over another"
    assert (
        max(box["y2"] for box in boxes) <= spec["layer"][0]["encoding"]["y"]["scale"]["domain"][0]
    )


def test_a_text_of_known_words_is_drawn_before_one_of_unknown_words():
    test = small_corpus().splits["test"]
    vocabulary = Vocabulary(["bad", "good", "plot"])
    tokens = [["a", "good", "plot", "odd"] for _ in test.labels]
    first, last = ([f(np.flatnonzero(test.labels == c)) for c in (0, 1)] for f in (min, max))
    assert [*drawn_texts(replace(test, tokens=tokens), vocabulary, 2)] == first
    for row in last:
        tokens[row] = ["bad", "bad", "plot", "plot"]
    drawn = drawn_texts(replace(test, tokens=tokens), vocabulary, 2)
    assert [*drawn] == last
    assert drawn[last[0]] == ["[", "bad", "bad", "plot", "plot", "]"]
