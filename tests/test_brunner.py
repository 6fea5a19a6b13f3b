"""Brunner et al.: lookups and maps, models whose answer is known, and the whole reproduction, small."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import contents
from scipy import stats
from tiny_transformers import TEXTS, reviews_classifier, tiny_classifier, tiny_model, tiny_tokenizer

import heedmap.papers.brunner.paper as paper
from heedmap.data.load import load
from heedmap.errors import InputError
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.effective import effective_attention
from heedmap.papers.brunner.attribution import attribution_rows, contribution_row, head_rows
from heedmap.papers.brunner.claims import claims
from heedmap.papers.brunner.lookup import (
    CEILING,
    DISTANCES,
    count_right,
    nearest,
    nearest_in_text,
    token_rows,
)
from heedmap.papers.brunner.numbers import Lookup, Number, Numbers
from heedmap.papers.brunner.paper import reproduce, with_random_weights
from heedmap.papers.brunner.recovery import MAPS, Moments, Recovery, recovery_loss, token_states
from heedmap.papers.brunner.result import range_name, result
from heedmap.papers.brunner.settings import BrunnerSettings
from heedmap.settings.models import TransformerSettings

TINY = {
    "train_texts": 12, "test_texts": 6, "attributed_texts": 2, "max_length": 24, "directions": 2,
    "epochs": 1, "workers": 1,
}  # fmt: skip


def settings_of(**options):
    return BrunnerSettings.of(
        fingerprint="f", data={"source": "texts.csv"}, model="m", weights="w", **options
    )


def on_trial(model):
    wanted = TransformerSettings(source="made")
    return TransformerClassifier(model, tiny_tokenizer(), wanted, ["c0", "c1"])


def silent(model):
    """A BERT whose blocks add nothing, and whose embeddings its layer norms leave as they are."""
    with torch.no_grad():
        embeddings = model.bert.embeddings
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        words = embeddings.word_embeddings.weight
        words.sub_(words.mean(1, keepdim=True)).div_(words.std(1, correction=0, keepdim=True))
        for block in model.bert.encoder.layer:
            for dense in (block.attention.output.dense, block.output.dense):
                dense.weight.zero_()
                dense.bias.zero_()
    return model


def averaging(model):
    """The same, but every head of every block averages all positions, and drowns what was there before."""
    with torch.no_grad():
        for block in silent(model).bert.encoder.layer:
            own = block.attention.self
            for part in (own.query, own.key):
                part.weight.zero_()
                part.bias.zero_()
            own.value.bias.zero_()
            own.value.weight.copy_(1e9 * torch.eye(16))
            block.attention.output.dense.weight.copy_(torch.eye(16))
    return model


def rows_where(rows, **wanted):
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


# Lookups


def nearest_slowly(vectors, candidates, distance):
    found = []
    for vector in vectors.double():
        if distance == "l2":
            far = [float((vector - c).norm()) for c in candidates.double()]
        else:
            far = [
                -float(torch.nn.functional.cosine_similarity(vector, c, dim=0))
                for c in candidates.double()
            ]
        found.append(int(np.argmin(far)))
    return found


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 1), (2, 1), (7, 5), (40, 30)])
def test_the_nearest_is_that_of_every_distance(distance, n, m):
    rng = torch.Generator().manual_seed(n)
    vectors, candidates = (torch.randn(size, 4, generator=rng) for size in (n, m))
    expected = nearest_slowly(vectors, candidates, distance)
    assert nearest(vectors, candidates, distance).tolist() == expected


def test_of_equally_near_candidates_the_first_is_taken():
    candidates = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    for distance in DISTANCES:
        assert nearest(torch.tensor([[1.0, 0.0]]), candidates, distance).tolist() == [1]


def test_cosine_and_euclidean_distance_differ_by_length():
    candidates = torch.tensor([[10.0, 0.0], [0.6, 0.8]])
    vector = torch.tensor([[1.0, 0.1]])
    assert nearest(vector, candidates, "cosine").tolist() == [0]
    assert nearest(vector, candidates, "l2").tolist() == [1]


def test_candidates_in_a_text_are_its_real_positions():
    ids = torch.tensor([[7, 8, 0], [8, 9, 5]])
    embedded = torch.tensor([[[1.0, 0], [0, 1], [5, 5]], [[0, 1], [1, 0], [-1, 0]]])
    real = torch.tensor([[True, True, False], [True, True, True]])
    vectors = torch.tensor([[5.0, 4.9], [1.0, 0.1], [-2.0, 0.1]])
    tokens = nearest_in_text(vectors, torch.tensor([0, 1, 1]), ids, embedded, real, "l2")
    assert tokens.tolist() == [7, 9, 5]  # not 0, the padding, though it is the nearest


@pytest.mark.parametrize(
    ("tokens", "truth"), [([], []), ([3], [3]), ([3, 3], [3, 4]), ([1, 2, 2, 5], [2, 2, 1, 1])]
)
def test_chance_is_the_mean_over_all_orders_of_the_tokens(tokens, truth):
    found = count_right(
        torch.tensor(tokens, dtype=torch.long),
        torch.tensor(truth, dtype=torch.long),
        torch.zeros(len(truth), dtype=torch.bool),
    )
    orders = [*itertools.permutations(truth)]
    expected = np.mean([sum(a == b for a, b in zip(tokens, o, strict=True)) for o in orders])
    assert found["right"] == sum(a == b for a, b in zip(tokens, truth, strict=True))
    assert found["chance"] == pytest.approx(float(expected))


# Maps


def made_moments(n, constant=False):
    rng = torch.Generator().manual_seed(n)
    states, embeddings = torch.randn(3, n, 4, generator=rng), torch.randn(n, 2, generator=rng)
    if constant:
        states[..., 2] = 5.0
    cuts = [slice(0, 1), slice(1, n // 2), slice(n // 2, n)]
    parts = [Moments.of(states[:, cut], embeddings[cut]) for cut in cuts]
    return states, embeddings, parts[0].plus(parts[1]).plus(parts[2])


@pytest.mark.parametrize("constant", [False, True])
def test_moments_of_parts_are_those_of_the_whole(constant):
    states, embeddings, moments = made_moments(11, constant)
    for vectors, (mean, deviation) in (
        (states, moments.of_states),
        (embeddings, moments.of_embeddings),
    ):
        torch.testing.assert_close(mean.float(), vectors.mean(-2))
        expected = vectors.std(-2, correction=0)
        expected = torch.where(expected > 1e-6, expected, 1.0)
        torch.testing.assert_close(deviation.float(), expected)
    assert moments.positions == 11


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("constant", [False, True])
def test_maps_begin_as_least_squares(kind, constant):
    states, embeddings, moments = made_moments(40, constant)
    recovered = Recovery(kind, moments)(states)
    for layer in range(3):
        with_one = np.column_stack([states[layer].numpy(), np.ones(40)])
        solution = np.linalg.lstsq(with_one, embeddings.numpy(), rcond=None)[0]
        expected = torch.from_numpy(with_one @ solution).float()
        torch.testing.assert_close(recovered[layer], expected, atol=1e-3, rtol=1e-3)


def test_a_linear_map_is_linear_and_an_mlp_can_be_more():
    states, _, moments = made_moments(9)
    middle = (states[:, :1] + states[:, 1:2]) / 2
    for kind in MAPS:
        recovery = Recovery(kind, moments)
        with torch.no_grad():
            for parameter in recovery.parameters():
                parameter.add_(0.1 * torch.ones_like(parameter).cumsum(-1))
        first, second, between = (recovery(x) for x in (states[:, :1], states[:, 1:2], middle))
        is_linear = torch.allclose(between, (first + second) / 2, atol=1e-4)
        assert is_linear == (kind == "linear")


def test_the_losses_are_the_mean_distances_summed_over_layers():
    recovered, truth = torch.randn(2, 3, 4), torch.randn(3, 4)
    cosines = [
        1 - float(torch.nn.functional.cosine_similarity(recovered[i, j], truth[j], dim=0))
        for i in range(2)
        for j in range(3)
    ]
    assert float(recovery_loss(recovered, truth, "cosine")) == pytest.approx(sum(cosines) / 3)
    squares = [
        float((recovered[i, j] - truth[j]).square().sum()) for i in range(2) for j in range(3)
    ]
    size = sum(float(x.square().sum()) for x in truth)
    assert float(recovery_loss(recovered, truth, "l2")) == pytest.approx(sum(squares) / size)


def test_states_are_of_words_alone():
    model = tiny_classifier("bert")
    states, ids, text = token_states(model, TEXTS)
    # unwatchable is three sub-words and films two.
    assert text.tolist() == [0] * 4 + [1] * 10 + [2]
    assert states.shape == (4, 15, 16)
    assert not set(ids.tolist()) & {0, 2, 3}


# Models whose answer is known


@pytest.fixture(scope="module")
def silent_rows():
    settings = settings_of(epochs=20, learning_rate=1e-2, batch_size=3)
    return token_rows(on_trial(silent(tiny_model())), TEXTS, TEXTS, settings, "made")


def test_of_a_model_that_changes_nothing_every_token_is_recovered(silent_rows):
    for name in ("naive", *MAPS, CEILING):
        rows = rows_where(silent_rows, map=name)
        assert {row["layer"] for row in rows} == ({0} if name == CEILING else {0, 1, 2, 3})
        assert len(rows) == 3 * 2 * 2 * (1 if name == CEILING else 4)
        missed = [row for row in rows if row["right"] < row["n"]]
        assert not missed, (name, missed[0])
    assert rows_where(silent_rows, text=0, map="naive")[0]["chance"] == pytest.approx(1.0)
    assert not any(row["new"] for row in silent_rows)


def test_of_a_model_that_averages_all_positions_tokens_are_recovered_by_chance():
    model = on_trial(averaging(tiny_model()))
    rows = token_rows(model, TEXTS, TEXTS, settings_of(epochs=1), "made")
    for row in rows:
        if row["layer"] > 0:
            assert row["right"] == pytest.approx(row["chance"]), row
    after = rows_where(rows, map="naive", distance="l2", candidates="text", layer=3)
    assert sum(row["right"] for row in after) < sum(row["n"] for row in after) / 2


def test_contributions_of_models_that_change_nothing_and_that_average():
    settings = settings_of(directions=3)
    for made, itself in ((silent, lambda n: 1.0), (averaging, lambda n: 1 / n)):
        rows = attribution_rows(on_trial(made(tiny_model())), TEXTS, settings)
        for row in rows_where(rows, part="contributions"):
            expected = itself(row["positions"])
            assert row["contribution"][0] == pytest.approx(expected, abs=1e-2)
            assert row["median"] == pytest.approx(expected, abs=1e-2)
            assert row["uniform"][0] == pytest.approx(1 / row["positions"])
            for name in ("contribution", "attention", "rollout", "uniform"):
                assert sum(row[name]) == pytest.approx(1.0, abs=1e-5)
            if made is silent:
                assert row["not_largest"] == 0
        if made is averaging:
            for row in rows_where(rows, part="contributions"):
                assert row["attention"] == pytest.approx(row["uniform"])


def test_a_head_of_known_rank_has_the_null_space_that_follows():
    model = tiny_model()
    with torch.no_grad():
        value = model.bert.encoder.layer[1].attention.self.value
        value.bias.zero_()
        value.weight[1:4] = 2 * value.weight[:1]  # head 0, of 4 dimensions: rank 1
        value.weight[4:8] = 0.0  # head 1: rank 0
        value.weight[10:12] = value.weight[8:10]  # head 2: rank 2
    rows = attribution_rows(on_trial(model), TEXTS, settings_of(directions=1))
    for text, size in ((0, 6), (1, 12), (2, 3)):
        heads = rows_where(rows, part="heads", layer=1, text=text)
        ranks = [1, 0, 2, min(4, size)]
        assert [row["rank"] for row in heads] == ranks
        assert [row["free"] for row in heads] == [size - rank for rank in ranks]
        assert [row["free_on_simplex"] for row in heads] == [
            size - min(rank + 1, size) for rank in ranks
        ]
        assert heads[1]["effective_share"] == 0
        if size == 3:
            assert heads[3]["effective_share"] == 1
            assert heads[3]["tau_raw"] == heads[3]["tau_effective"]


# Rows against loops


def test_masses_by_distance_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    matrix = torch.from_numpy(rng.dirichlet(np.ones(16), 16))
    is_word = torch.ones(16, dtype=torch.bool)
    is_word[[0, 15]] = False
    row = contribution_row(
        {"contribution": matrix, "attention": matrix, "rollout": matrix}, is_word
    )
    sums = dict.fromkeys(["0", "1", "2", "3–5", "6–10", "over 10"], 0.0)
    for i in range(1, 15):
        for j in range(16):
            d = abs(i - j)
            name = str(d) if d < 3 else "3–5" if d < 6 else "6–10" if d < 11 else "over 10"
            sums[name] += float(matrix[i, j]) / 14
    assert [range_name(i) for i in range(6)] == [*sums]
    assert row["contribution"] == pytest.approx([*sums.values()])
    diagonal = [float(matrix[i, i]) for i in range(1, 15)]
    assert row["median"] == pytest.approx(float(np.median(diagonal)))
    larger = sum(float(matrix[i].max()) > float(matrix[i, i]) for i in range(1, 15))
    assert row["not_largest"] == larger


def test_facts_of_heads_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    attention = torch.from_numpy(rng.dirichlet(np.ones(7), (2, 7)))
    transformed = torch.from_numpy(rng.standard_normal((2, 7, 3)))
    shares = torch.from_numpy(rng.dirichlet(np.ones(7), 7))
    special = torch.tensor([True, *[False] * 5, True])
    rows = head_rows(attention, transformed, shares, ~special, special, np.random.default_rng(0))
    mask = torch.ones(2, 7, dtype=torch.bool)
    effective = effective_attention(attention, transformed, mask)
    for head, row in enumerate(rows):
        assert (row["rank"], row["free"], row["free_on_simplex"]) == (3, 4, 3)
        for name, matrix in (("raw", attention[head]), ("effective", effective[head].abs())):
            taus, masses, kept = [], [], []
            for i in range(1, 6):
                places = [j for j in range(7) if j != i]
                taus.append(stats.kendalltau(matrix[i, places], shares[i, places]).statistic)
                masses.append(float((matrix[i, 0] + matrix[i, 6]) / matrix[i].sum()))
                kept.append(float(effective[head, i].norm() / attention[head, i].norm()))
            assert row[f"tau_{name}"] == pytest.approx(np.mean(taus))
            assert row[f"special_{name}"] == pytest.approx(np.mean(masses))
            assert row["effective_share"] == pytest.approx(np.mean(kept))


def test_the_control_has_a_null_space_that_knows_nothing_of_the_values():
    rng = np.random.default_rng(2)
    attention = torch.from_numpy(rng.dirichlet(np.ones(8), (1, 8)))
    special = torch.tensor([True, *[False] * 7])
    # Values that tell positions apart but for the first, whose weights are without effect.
    transformed = torch.eye(8).double()[None] * (~special)[None, :, None]
    shares = torch.eye(8).double()
    rows = [
        head_rows(attention, transformed, shares, ~special, special, np.random.default_rng(seed))[0]
        for seed in range(20)
    ]
    assert all(row["free"] == 1 for row in rows)
    assert all(row["special_effective"] < 1e-12 for row in rows)
    raw, control = rows[0]["special_raw"], np.mean([row["special_control"] for row in rows])
    assert abs(control - raw) < 0.05
    whole = head_rows(attention, torch.eye(8).double()[None], shares, ~special, special, rng)[0]
    assert whole["special_control"] == whole["special_raw"]


def test_a_model_without_known_values_has_rows_of_raw_attention_alone():
    rows = attribution_rows(tiny_classifier("mpnet"), TEXTS[:1], settings_of(directions=1))
    heads = rows_where(rows, part="heads")
    assert len(heads) == 3 * 4
    assert all("rank" not in row and "special_effective" not in row for row in heads)
    found = claims({"trained": Numbers(heads)})
    assert [claim.verdict for claim in found] == ["undecided", "undecided"]


def test_a_text_of_one_token_has_no_rank_correlation_without_itself():
    rows = head_rows(
        torch.ones(1, 1, 1).double(), torch.ones(1, 1, 2).double(), torch.ones(1, 1).double(),
        torch.ones(1, dtype=torch.bool), torch.zeros(1, dtype=torch.bool), np.random.default_rng(0),
    )  # fmt: skip
    assert rows[0]["tau_raw"] is None
    assert rows[0]["special_raw"] == 0


def test_embeddings_of_another_width_have_no_lookup_without_a_map():
    rows = token_rows(tiny_classifier("albert"), TEXTS, TEXTS[:2], settings_of(epochs=1), "made")
    assert {row["map"] for row in rows} == {CEILING, *MAPS}


# Numbers and claims


def tokens_of(text, right, n=10, **names):
    shared = {"part": "tokens", "chance": 1.0, "new": 2, "new_right": 1}
    return {**shared, "text": text, "n": n, "right": right, **names}


def made_models(first, middle, last, euclidean):
    rows = [
        tokens_of(
            text, right + text % 2, map=name, distance=distance, candidates="text", layer=layer
        )
        for name in ("naive", "linear")
        for distance in DISTANCES
        for layer, right in enumerate(
            (10, first, middle, last) if distance == "cosine" else [euclidean] * 4
        )
        for text in range(200)
    ]
    return {"trained": Numbers(rows), "random": Numbers(rows)}


def test_numbers_are_ratios_over_the_texts():
    numbers = made_models(9, 8, 7, 3)["trained"]
    lookup = Lookup("linear", "cosine", "text")
    assert numbers.layers == [0, 1, 2, 3]
    assert numbers.recovered(lookup, 3).value == pytest.approx(0.75)
    assert numbers.chance(lookup, 3).value == pytest.approx(0.1)
    assert numbers.recovered_new(lookup, 3).value == pytest.approx(0.5)
    assert numbers.recovered(Lookup("mlp", "l2", "text"), 3).per_cent() == "–"
    less = numbers.difference((lookup, 3), (lookup, 1))
    assert less.value == pytest.approx(-0.2)
    assert Number(0.5, 0.4, 0.6, 9).per_cent() == "50.0 (40.0–60.0)"


@pytest.mark.parametrize(
    ("shares", "verdicts"),
    [
        ((9, 8, 7, 3), ["survives", "survives", "survives"]),
        ((4, 5, 6, 8), ["survives", "does not", "does not"]),
        ((3, 2, 1, 1), ["does not", "undecided", "survives"]),
    ],
)
def test_claims_about_tokens_follow_from_the_numbers(shares, verdicts):
    found = claims(made_models(*shares))
    assert [claim.verdict for claim in found] == verdicts


# The whole


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return str(reviews_classifier(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def corpus():
    return load("reviews")


@pytest.fixture(scope="module")
def done(corpus, classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction") / "run"
    return reproduce(corpus, model=classifier, out=folder, **TINY)


@pytest.mark.slow
def test_the_result_stands_in_the_folder(done):
    assert (len(done.claims), done.missing) == (6, 0)
    text = (done.folder / "result.md").read_text()
    assert (
        "Texts of reviews: train 12 of 2720, test 6 of 800; 2 of the test texts attributed." in text
    )
    assert "cut (kept)" in text
    for title in ("among the tokens of the text", "among the whole vocabulary", "to its own state",
                  "Contributions by distance", "null space"):  # fmt: skip
        assert title in text
    numbers = pd.read_csv(done.folder / "result.csv")
    assert set(numbers["weights"]) == {"trained", "random"}
    shares = numbers[numbers["measure"] == "recovered"]
    assert len(shares) == 2 * (4 * 3 * 4 + 4)
    assert shares["value"].between(0, 1).all()
    ceiling = shares[shares["map"] == CEILING]
    assert (ceiling["value"] == 1).all()
    figures = [figure.key for figure in result(done).figures]
    assert figures == ["recovered-text", "recovered-vocabulary", "contributions", "effective-trained",
                       "effective-random"]  # fmt: skip


@pytest.mark.exhaustive
def test_it_is_read_again_and_resumed_to_the_same_bytes(
    done, corpus, classifier, tmp_path, monkeypatch
):
    again = paper.PAPER.read(done.folder)
    assert (again.rows, again.name) == (done.rows, "reviews")
    assert paper.PAPER.read(done.folder.parent) is None
    original, seen = paper.compute, []

    def stop_at_the_second(cell, checkpoints, *, shared):
        seen.append(str(cell))
        if len(seen) == 2:
            raise KeyboardInterrupt
        return original(cell, checkpoints, shared=shared)

    monkeypatch.setattr(paper, "compute", stop_at_the_second)
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        reproduce(corpus, model=classifier, out=folder, **TINY)
    assert "Not finished: 2 models" in (folder / "result.md").read_text()
    state = torch.get_rng_state()
    reproduce(corpus, model=classifier, out=folder, **TINY)
    assert seen == [
        "trained-tokens",
        *["trained-attribution"] * 2,
        "random-tokens",
        "random-attribution",
    ]
    assert torch.equal(state, torch.get_rng_state())
    assert contents(folder) == contents(done.folder)


def test_random_weights_are_another_model_of_the_same_shape():
    model = tiny_classifier("bert")
    random, again = (with_random_weights(model, 0) for _ in range(2))
    for mine, theirs, same in zip(
        model.parameters(), random.parameters(), again.parameters(), strict=True
    ):
        assert mine.shape == theirs.shape
        assert torch.equal(theirs, same)
    first = next(iter(model.parameters()))
    assert not torch.equal(first, next(iter(random.parameters())))


def test_test_texts_are_held_out_and_counted_once(corpus):
    model = tiny_classifier("bert")
    train = corpus.splits["train"]
    small = replace(train, keys=["a", "b", "c"], tokens=[["bad"], ["bad"], ["a", " plot"]],
                    labels=train.labels[:3], rationale=None)  # fmt: skip
    test = replace(small, tokens=[["bad"], ["a", " film"], [" "]])
    texts = replace(corpus, splits={"train": small, "dev": small, "test": test})
    splits, notes = paper.texts_for(model, texts, settings_of())
    assert splits == {"train": [["bad"], ["a", " plot"]], "test": [["a", " film"]]}
    assert "train 2 of 3, test 1 of 3; 1 of the test texts attributed" in notes[1]
    same = replace(corpus, splits={"train": small, "dev": small, "test": small})
    with pytest.raises(InputError, match=r"expected test texts.*choose other data"):
        paper.texts_for(model, same, settings_of())


@pytest.mark.slow
def test_bad_input_is_said_in_one_line(heedmap, classifier, tmp_path):
    listed = heedmap("reproduce", "brunner")
    assert listed.code == 0
    assert "--model MODEL" in listed.out
    for options, message in (
        (["--data", "reviews"], "--model is missing"),
        (["--model", classifier], "--data is missing"),
        (["--model", classifier, "--data", "reviews", "--epochs", "0"], "epochs"),
        (["--model", str(tmp_path), "--data", "reviews"], "config.json"),
    ):
        answer = heedmap("reproduce", "brunner", *options, "--out", tmp_path / "run")
        assert answer.code == 2, answer.err
        assert message in answer.err
        assert not (tmp_path / "run").exists()
