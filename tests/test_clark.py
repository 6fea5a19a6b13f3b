"""Clark et al.: heads and probes with known answers, and the whole command on a tiny transformer."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import contents, watched
from tiny_transformers import reviews_classifier, tiny_classifier
from torch.nn import functional

from heedmap.data.dependency_grammar import DependencyGrammar
from heedmap.data.trees import ROOT, DependencyTree, hold_out
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.huggingface.word_attention import (
    read_attention,
    unreadable,
    with_random_layers,
    word_vectors,
)
from heedmap.importance.head_relations import Predictions
from heedmap.papers.clark.claims import (
    difference,
    gap_between_layers,
    layers_alike,
    probes,
    separators,
    single_heads,
)
from heedmap.papers.clark.control import rules_of, with_control_heads
from heedmap.papers.clark.figures import stress
from heedmap.papers.clark.paper import reproduce
from heedmap.papers.clark.probes import ProbeTraining, Sentence, new_probes
from heedmap.papers.clark.profiles import clusters_of, label_of, places_of, profile_rows
from heedmap.papers.clark.relations import ALL, RelationSearch, per_sentence
from heedmap.papers.clark.texts import SEGMENT, Vectors, WordVectors, segments
from heedmap.papers.kit.registry import figures, paper

LAYERS, HEADS = 2, 3
FOLLOWS = {"det": 4, "dobj": 1}  # head of attention by relation, of six


def drawn(count, seed=0):
    return DependencyGrammar(np.random.default_rng(seed)).draw(count)


def planted(tree, rng):
    """Attention of six heads: two follow a relation, in either direction, the others nothing."""
    size = len(tree)
    scores = rng.normal(size=(LAYERS * HEADS, size, size))
    for word in tree.scored:
        if (head := FOLLOWS.get(tree.relations[word])) is not None:
            there = (word, tree.heads[word])
            scores[(head, *(there if head == 1 else there[::-1]))] += 9.0
    return torch.from_numpy(scores).float().softmax(-1)


@pytest.fixture(scope="module")
def search():
    rng = np.random.default_rng(5)
    split = hold_out(drawn(240), 160, 80, rng)
    predictions = [Predictions.of(part, [planted(tree, rng) for tree in part]) for part in split]
    return RelationSearch(split, *predictions, HEADS)


def test_the_heads_that_follow_a_relation_are_found_and_no_control_head_is(search):
    rows = {row["relation"]: row for row in search.rows(controls=10)}
    for relation, head, direction in (
        ("det", (1, 1), "head to dependent"),
        ("dobj", (0, 1), "dependent to head"),
    ):
        row = rows[relation]
        assert (row["layer"], row["head"]) == head
        assert row["direction"] == direction
        assert row["accuracy"] > 0.95
        assert row["gain_low"] > 0.3
        assert row["control_accuracy"] < 0.35
        assert row["control_gain_largest"] <= 0.1
    others = [row for name, row in rows.items() if name not in FOLLOWS and "accuracy" in row]
    assert len(others) > 6
    assert max(row["gain_low"] for row in others) < 0
    claim = single_heads(
        [{**row, "model": "trained"} for row in rows.values() if "accuracy" in row][1:]
    )
    assert claim.verdict == "survives"
    assert "det" in claim.numbers[0]
    assert "dobj" in claim.numbers[0]


def test_the_numbers_of_a_relation_are_those_of_its_held_out_words(search):
    row = next(row for row in search.rows(controls=1) if row["relation"] == "nsubj")
    offsets = [
        tree.heads[word] - word == row["offset"]
        for tree in search.trees.test
        for word in tree.scored
        if tree.relations[word] == "nsubj"
    ]
    assert row["n"] == len(offsets)
    assert row["offset_accuracy"] == pytest.approx(np.mean(offsets))


def test_relations_of_few_words_are_counted_and_not_judged(search):
    rows = search.rows(controls=1)
    rare = [row for row in rows if "accuracy" not in row]
    assert {row["relation"] for row in rare} & {row["relation"] for row in rows[:3]} == set()
    assert all(set(row) == {"relation", "n"} for row in rare)
    assert rows[0]["relation"] == ALL


def test_baselines_count_the_words_of_each_sentence(search):
    rows = {(row["probe"], row["task"]): row for row in search.baseline_rows()}
    scored = [len(tree.scored) for tree in search.trees.test]
    right = [
        sum(tree.heads[word] == word + 1 for word in tree.scored) for tree in search.trees.test
    ]
    assert rows["right-branching", "trees"]["scored"] == scored
    assert rows["right-branching", "trees"]["correct"] == right
    assert rows["best offset", "trees"]["accuracy"] >= rows["right-branching", "trees"]["accuracy"]


def test_counts_per_sentence_add_up():
    row = per_sentence(np.array([True, False, True]), np.array([0, 1, 1]))
    assert row == {"accuracy": 2 / 3, "n": 3, "correct": [1, 1], "scored": [1, 2]}


def test_control_heads_are_other_words_by_the_type_alone():
    trees = drawn(200)
    rules = rules_of(trees, np.random.default_rng(0))
    assert set(rules.values()) == {0, 1, 2}
    for tree in trees:
        changed = with_control_heads(tree, rules)
        assert (changed.words, changed.relations) == (tree.words, tree.relations)
        assert changed.scored == tree.scored
        for word, head in enumerate(changed.heads):
            if tree.heads[word] == ROOT:
                assert head == ROOT
                continue
            rule = rules[tree.words[word].lower()]
            end = len(tree) - 1
            by_rule = {0: (end, end, end), end: (0, 0, end - 1)}.get(word, (0, end, word - 1))
            assert head == by_rule[rule]


@pytest.mark.parametrize("rule", range(3))
def test_control_heads_of_two_words_are_the_other_word(rule):
    tree = DependencyTree(("It", " works"), (1, ROOT), ("nsubj", "root"))
    assert with_control_heads(tree, {"it": rule, "works": rule}).heads == (1, ROOT)


def sentence_of(size=4, heads=3, vector=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tree = DependencyTree(
        tuple(f" w{i}" for i in range(size)),
        (ROOT, *[0] * (size - 1)),
        ("root", *["dep"] * (size - 1)),
    )
    attention = torch.rand(heads, size, size, generator=generator).softmax(-1)
    return Sentence(tree, attention, torch.randn(size, vector, generator=generator))


def notebook_features(n):
    """The notebook's eight features of each word (row) and candidate (column), the first being the root."""
    features = np.zeros((8, n, n + 1))
    for i in range(n):
        features[7, i, 0] = 1
        for j in range(n):
            features[0, i, j + 1] = max(j - i, 0) / n
            features[1, i, j + 1] = max(i - j, 0) / n
            for place, offset in enumerate((0, -1, 1, -2, 2), 2):
                features[place, i, j + 1] = j - i == offset
    return torch.from_numpy(features).float()


def notebook_logits(name, read, parameters):
    """The notebook's scores of the root and of all words, with [CLS] before and [SEP] behind the words."""
    n, maps = len(read.vectors), torch.cat([read.attention, read.attention.transpose(1, 2)])
    framed = functional.pad(maps, (1, 1, 1, 1), value=0.3)
    root = 0.7 * framed[:, 1:-1, :1] - 0.4 * framed[:, 1:-1, -1:]
    candidates = torch.cat([root, framed[:, 1:-1, 1:-1]], -1)
    words = torch.zeros(n, n + 1, 2 * read.vectors.shape[1])
    for i in range(n):
        for j in range(n):
            words[i, j + 1] = torch.cat([read.vectors[i], read.vectors[j]])
    if name == "attention":
        (weights,) = parameters
        return (candidates * weights[:, None, None]).sum(0)
    if name == "attention and vectors":
        kernel, bias = parameters
        return ((words @ kernel.T + bias) * candidates.permute(1, 2, 0)).sum(-1)
    kernel, bias, output, last = parameters
    features = notebook_features(n).permute(1, 2, 0)[..., [0, 1, 5, 3, 2, 4, 6]]
    hidden = torch.tanh(torch.cat([features, words], -1) @ kernel.T + bias)
    return (hidden @ output.T + last).squeeze(-1)


def words_of(size, seed):
    """A sentence whose second word is the root, with a full stop, and its attention and vectors."""
    heads = [1, ROOT, *[int(h) for h in np.random.default_rng(seed).integers(1, size, size - 2)]]
    relations = ("det", "root", *["dep"] * (size - 3), "punct")
    pieces = tuple(f" w{i}" for i in range(size))
    return replace(
        sentence_of(size, seed=seed), tree=DependencyTree(pieces, tuple(heads), relations)
    )


def notebook_step(scores, heads, parameters, moments, t):
    """One step of TensorFlow's Adam on the sum over all words that have a head."""
    rows = [word for word, head in enumerate(heads) if head != ROOT]
    loss = sum(scores[word].logsumexp(0) - scores[word, heads[word]] for word in rows)
    rate = 0.002 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, moment, gradient in zip(parameters, moments, gradients, strict=True):
            moment[0] = 0.9 * moment[0] + 0.1 * gradient
            moment[1] = 0.999 * moment[1] + 0.001 * gradient**2
            parameter.sub_(rate * moment[0] / (moment[1].sqrt() + 1e-8))


def test_probes_score_and_learn_as_the_notebook_s():
    """Of sentences in which words are up to eight apart; the root, its first candidate, is none of ours."""
    for name, probe in new_probes(3, 2, 0).items():
        training = ProbeTraining(probe)
        parameters = [p.detach().clone().requires_grad_() for p in probe.parameters()]
        moments = [[0.0, 0.0] for _ in parameters]
        for t in range(1, 6):
            read = words_of(4 + t, seed=t)
            scores = notebook_logits(name, read, parameters)[:, 1:]
            # Only as probabilities: the last bias of distances is without effect, and rounding moves it.
            torch.testing.assert_close(probe(read).log_softmax(-1), scores.log_softmax(-1))
            predicted = scores.argmax(-1).tolist()
            gold = [head if head == ROOT or i % 2 else predicted[i]
                    for i, head in enumerate(read.tree.heads)]  # fmt: skip
            right = sum(predicted[word] == gold[word] for word in read.tree.scored)
            assert training.right(read, gold) == right > 0
            training.step(read, read.tree.heads)
            notebook_step(scores, read.tree.heads, parameters, moments, t)


def test_probes_begin_as_in_tensorflow():
    """Kernels by Glorot's limit √(6 / (inputs + outputs)), for a vector of n √(3 / n), and biases of 0."""
    heads, size = 72, 300
    plain, with_words, distances = new_probes(heads, size, 0).values()
    assert with_words.weights.weight.shape == (2 * heads, 2 * size)
    assert distances.hidden.weight.shape == (256, 7 + 2 * size)
    for weights, limit in (
        (plain.weights, math.sqrt(3 / 144)),
        (with_words.weights.weight, math.sqrt(6 / (600 + 144))),
        (distances.hidden.weight, math.sqrt(6 / (607 + 256))),
        (distances.output.weight, math.sqrt(6 / 257)),
    ):
        assert 0.95 * limit < weights.abs().max() <= limit
        assert float(weights.detach().std()) == pytest.approx(limit / math.sqrt(3), rel=0.1)
    biases = [with_words.weights.bias, distances.hidden.bias, distances.output.bias]
    assert not any(bias.any() for bias in biases)


def test_a_probe_finds_trees_that_heads_hold_together_and_no_control():
    """Each head of attention holds the relations of its number: no head alone has all."""
    trees = drawn(260, seed=2)
    rng = np.random.default_rng(0)
    numbers = {
        name: i % 6 for i, name in enumerate(sorted({r for t in trees for r in t.relations}))
    }

    def sentence(tree):
        scores = rng.normal(size=(6, len(tree), len(tree)))
        for word in tree.scored:
            scores[numbers[tree.relations[word]], word, tree.heads[word]] += 6
        return Sentence(
            tree, torch.from_numpy(scores).float().softmax(-1), torch.zeros(len(tree), 2)
        )

    sentences = [sentence(tree) for tree in trees]
    rules = rules_of(trees, rng)
    total = sum(len(tree.scored) for tree in trees[200:])
    share = {}
    for task in ("trees", "control"):
        training = ProbeTraining(new_probes(6, 2, 0)["attention"])
        heads = [t.heads if task == "trees" else with_control_heads(t, rules).heads for t in trees]
        for read, gold in 4 * list(zip(sentences, heads, strict=True))[:200]:
            training.step(read, gold)
        judged = zip(sentences[200:], heads[200:], strict=True)
        share[task] = sum(training.right(read, gold) for read, gold in judged) / total
    assert share["trees"] > 0.9
    assert share["control"] < 0.4


def test_vectors_of_a_file_are_read_as_they_are_and_embeddings_scaled():
    vocabulary = Vocabulary.build([["the", "film"]], 1)
    table = np.arange(2 * len(vocabulary), dtype=np.float32).reshape(-1, 2)
    tree = DependencyTree(("The", " film"), (1, ROOT), ("det", "root"))
    expected = table[vocabulary.encode(["the", "film"])[1:-1]]
    model = tiny_classifier()
    of_file = Vectors(model, WordVectors(vocabulary, table), [tree]).of(tree)
    assert of_file.tolist() == expected.tolist()
    assert float(Vectors(model, None, [tree]).of(tree).square().mean()) == pytest.approx(1)


def scored(correct, seeds=1, words=10):
    return [{"correct": correct, "scored": [words] * len(correct)}] * seeds


def test_a_difference_is_of_means_over_seeds_and_its_interval_over_sentences():
    better = [*scored([5, 7, 6, 8]), *scored([7, 7, 8, 8])]
    mean, (low, high) = difference(better, scored([4, 4, 4, 4]), 0.95)
    values = np.array([2.0, 3, 3, 4])
    half = 3.182446 * values.std(ddof=1) / 2
    assert mean == pytest.approx(0.3)
    assert (low, high) == pytest.approx(((3 - half) / 10, (3 + half) / 10), rel=1e-5)


@pytest.mark.parametrize(
    ("attention", "verdicts"),
    [(9, ["survives", "survives", "survives"]), (1, ["does not", "does not", "does not"])],
)
def test_claims_about_probes_follow_their_intervals(attention, verdicts):
    def near(value):
        return scored([value, value + 1, value - 1, value, value] * 4)

    names = ("best head", "distances and vectors", "random layers: attention and vectors")
    scores = {(name, "trees"): scored([5] * 20) for name in names}
    scores["distances and vectors", "control"] = scored([5] * 20)
    for name in ("attention", "attention and vectors"):
        scores |= {(name, "trees"): near(attention), (name, "control"): scored([5] * 20)}
    assert [claim.verdict for claim in probes(scores)] == verdicts
    del scores["best head", "trees"]
    assert probes(scores)[0].verdict == "undecided"
    assert probes({}) == []


def test_a_probe_with_vectors_is_selective_beyond_what_words_give_without_attention():
    names = ("attention", "attention and vectors", "distances and vectors")
    trees = [8, 9, 7, 8, 8] * 4
    scores = {(name, "trees"): scored(trees) for name in names}
    scores |= {(name, "control"): scored([2] * 20) for name in names}
    claim = probes(scores)[2]
    assert claim.verdict == "does not"
    assert claim.numbers[1].startswith(
        "selectivity of attention and vectors minus selectivity of dist"
    )


def heads_with(distances, layers, **columns):
    return [
        {"layer": layer, "head": i, "distances": list(row), **columns}
        for i, (layer, row) in enumerate(zip(layers, distances, strict=True))
    ]


def test_layers_are_alike_where_their_heads_are_nearer_than_by_chance():
    layers = np.repeat([0, 1, 2], 4)
    near = np.where(layers[:, None] == layers, 0.1, 0.9) * (1 - np.eye(12))
    assert gap_between_layers(near, layers) == pytest.approx(0.8)
    assert layers_alike(heads_with(near, layers)).verdict == "survives"
    far = np.where(layers[:, None] == layers, 0.9, 0.1) * (1 - np.eye(12))
    assert layers_alike(heads_with(far, layers)).verdict == "does not"
    equal = 1 - np.eye(12)
    assert layers_alike(heads_with(equal, layers)).verdict == "undecided"
    assert layers_alike(heads_with(equal[:4, :4], [0] * 4)) is None


def test_separators_are_judged_by_the_share_of_heads():
    def judge(values, to_sep=0.9):
        rows = [{"sep_to_sep": value, "others_to_sep": to_sep} for value in values]
        return separators(rows)

    assert judge([0.9] * 12).verdict == "survives"
    assert judge([0.1] * 12).verdict == "does not"
    assert judge([0.9, 0.1] * 6).verdict == "undecided"
    assert judge([0.9] * 12, to_sep=0.2) is None


def test_heads_in_two_groups_are_two_clusters_and_drawn_at_their_distances():
    groups = np.repeat([0, 1], 4)
    distances = np.where(groups[:, None] == groups, 0.01, 0.5) * (1 - np.eye(8))
    clusters = clusters_of(distances)
    assert len(set(clusters)) == 2
    assert all((clusters[groups == g] == clusters[4 * g]).all() for g in (0, 1))
    places = places_of(distances)
    rows = [
        {"x": x, "y": y, "distances": list(d)} for (x, y), d in zip(places, distances, strict=True)
    ]
    assert stress(rows) < 0.05
    assert (places == places_of(distances)).all()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_few_or_equal_heads_have_one_place_and_one_cluster(size):
    assert not places_of(np.zeros((size, size))).any()
    assert not clusters_of(np.zeros((size, size))).any()


def test_labels_are_the_paper_s():
    none = {
        "entropy": 1.0,
        "next": 0.5,
        "previous": 0,
        "cls": 0.6,
        "sep": math.nan,
        "punctuation": 0,
    }
    assert label_of(none, 4.0) == "none"
    assert (
        label_of({**none, "entropy": 3.9, "previous": 0.6, "sep": 0.7}, 4.852)
        == "broad, previous, sep"
    )
    assert label_of({**none, "entropy": 3.79}, math.log(128)) == "none"


def test_a_profile_of_a_model_has_every_head_and_uniform_attention():
    model = tiny_classifier()
    *heads, uniform = profile_rows(model, [["A", " great", " film", "."], ["bad"]])
    assert [(row["layer"], row["head"]) for row in heads] == [(i // 4, i % 4) for i in range(12)]
    # The first text has [CLS] A great film . [SEP], the second [CLS] bad [SEP].
    assert uniform["cls"] == pytest.approx((1 / 6 + 1 / 3) / 2)
    assert uniform["punctuation"] == pytest.approx(1 / 12)
    assert uniform["entropy"] == pytest.approx((math.log(6) + math.log(3)) / 2)
    for row in heads:
        assert 0 <= row["entropy"] <= uniform["entropy"] + 1e-9
        assert row["distances"][4 * row["layer"] + row["head"]] == 0


def test_untrained_layers_keep_the_embeddings_alone():
    model = tiny_classifier()
    first, again, other = (with_random_layers(model, seed) for seed in (0, 0, 1))
    pieces = ["the", " plot", " is", " unwatchable"]
    assert torch.equal(word_vectors(first, pieces), word_vectors(model, pieces))
    weights = [read_attention(m, pieces).weights for m in (model, first, again, other)]
    assert torch.equal(weights[1], weights[2])
    assert not torch.equal(weights[1], weights[3])
    assert not torch.allclose(weights[0], weights[1], atol=1e-3)


def test_words_that_cannot_be_told_apart_are_unreadable():
    model = tiny_classifier()
    assert unreadable(model, ["the", " film"], 8) is None
    assert unreadable(model, [" the", " film"] * 4, 8) == "more than 8 positions"
    assert unreadable(model, ["the", "  "], 8) == "a word that the tokenizer drops"


def test_word_vectors_are_means_over_sub_words():
    model = tiny_classifier()
    table = model.model.get_input_embeddings().weight
    ids = model.tokenizer.convert_tokens_to_ids(["un", "##watch", "##able"])
    torch.testing.assert_close(word_vectors(model, ["a", " unwatchable"])[1], table[ids].mean(0))


def test_segments_join_sentences_up_to_the_model_s_positions():
    model = tiny_classifier()
    assert model.tokenizer.model_max_length < SEGMENT
    trees = [DependencyTree(("the", *[" film"] * n), (ROOT, *[0] * n), ("root", *["dep"] * n))
             for n in (9, 9, 9, 9, 40, 3)]  # fmt: skip
    texts = segments(model, trees, 10)
    assert [len(text) for text in texts] == [30, 10, 4]
    assert texts[0][10] == " the"
    assert len(segments(model, trees, 1)) == 1


def test_models_of_two_stacks_are_refused():
    with pytest.raises(InputError, match="attention of a text over itself"):
        read_attention(tiny_classifier("bart"), ["A", " film"])


SMALL = {"train_sentences": 20, "test_sentences": 10, "segments": 2, "controls": 2, "seeds": 2}


@pytest.mark.slow
def test_a_reproduction_resumes_to_the_same_bytes_with_any_workers(tmp_path):
    class Stop(Exception):
        pass

    def stop(done, text):
        if text.startswith("probes-1"):
            raise Stop

    model = str(reviews_classifier(tmp_path / "model"))
    whole = reproduce(model=model, out=tmp_path / "whole", workers=1, **SMALL)
    with pytest.raises(Stop), watched(stop):
        reproduce(model=model, out=tmp_path / "stopped", workers=1, **SMALL)
    reproduce(model=model, out=tmp_path / "stopped", workers=2, **SMALL)
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")
    assert paper("clark").read(tmp_path / "whole").rows == whole.rows
    assert {figure.key for figure in figures(tmp_path / "whole")} == {
        "masses", "entropies", "distances", "relations",
    }  # fmt: skip


ROWS = (("The", 2, "det"), ("plot{i}", 3, "nsubj"), ("bored", 0, "root"), ("her", 3, "dobj"))
CONLLU = "".join(
    f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
    for number, (word, head, relation) in enumerate(ROWS, 1)
)


@pytest.mark.slow
def test_the_command_reads_trees_and_vectors_of_the_user(heedmap, tmp_path):
    model = reviews_classifier(tmp_path / "model")
    (tmp_path / "own.conllu").write_text("\n".join(CONLLU.format(i=i) for i in range(40)))
    (tmp_path / "vectors.txt").write_text("the 1 0\nbored 0 1\n")
    done = heedmap(
        "reproduce", "clark", "--model", str(model), "--trees", str(tmp_path / "own.conllu"),
        "--vectors", str(tmp_path / "vectors.txt"), "--segments", "2", "--seeds", "1", "--out",
        str(tmp_path / "out"), "--workers", "1",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "2 of 43 words" in done.out
    assert "Who finds the heads of words?" in done.out
    assert Path(tmp_path / "out" / "result.html").exists()


def test_what_is_needed_is_said_and_broken_trees_are_one_line(heedmap, tmp_path):
    assert heedmap("reproduce", "clark").code == 0
    (tmp_path / "own.conllu").write_text("1\tThe\n")
    done = heedmap("reproduce", "clark", "--trees", str(tmp_path / "own.conllu"))
    assert done.code == 2
    assert "--model" in done.err
    done = heedmap(
        "reproduce", "clark", "--trees", str(tmp_path / "own.conllu"), "--model", "./absent"
    )
    assert done.code == 2
    assert "line 1: expected 10 columns" in done.err


def test_too_few_sentences_are_refused_before_anything_is_written(tmp_path):
    model = str(reviews_classifier(tmp_path / "model"))
    (tmp_path / "own.conllu").write_text("\n".join(CONLLU.format(i=i) for i in range(9)))
    with pytest.raises(InputError, match="expected 20 different sentences or more"):
        reproduce(model=model, trees=tmp_path / "own.conllu", out=tmp_path / "out", **SMALL)
    assert not (tmp_path / "out").exists()
