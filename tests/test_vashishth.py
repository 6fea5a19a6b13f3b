"""Learned, uniform and permuted attention at training and at test (Vashishth et al.)."""

import numpy as np
import pytest
import torch
from conftest import small_corpus, small_pairs
from made_translations import sentences

from heedmap.data.parallel import Pairs, Parallel
from heedmap.data.pieces import Pieces
from heedmap.experiments.seed_intervals import mean_interval
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.result import signed
from heedmap.papers.kit.translators import Encoded
from heedmap.papers.vashishth.attention import changed, classified, translated
from heedmap.papers.vashishth.paper import reproduce
from heedmap.papers.vashishth.result import CHANGES, Vashishth, result
from heedmap.papers.vashishth.settings import VashishthSettings
from heedmap.runs.train import train

SMALL = {
    "seeds": 2, "epochs": 1, "hidden_size": 4, "embedding_size": 6, "translator_size": 6,
    "vocabulary": 60, "draws": 2, "workers": 1,
}  # fmt: skip


def parallel(count=30):
    splits = {}
    for seed, name in enumerate(("train", "dev", "test")):
        found = sentences(count if name == "train" else 10, seed)
        splits[name] = Pairs([one[0] for one in found], [one[1] for one in found])
    return Parallel("small", splits)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_changed_weights_are_those_of_a_plain_loop(size):
    generator = torch.Generator().manual_seed(size)
    lengths = torch.randint(1, size + 1, (5,), generator=generator)
    real = torch.arange(size) < lengths[:, None]
    weights = torch.rand(5, size, generator=generator) * real
    assert torch.equal(changed(weights, real, "learned"), weights)
    uniform, permuted = (
        changed(weights, real, name, generator) for name in ("uniform", "permuted")
    )
    for row, length in enumerate(lengths.tolist()):
        assert uniform[row].tolist() == pytest.approx([1 / length] * length + [0] * (size - length))
        assert sorted(permuted[row, :length].tolist()) == sorted(weights[row, :length].tolist())
        assert not permuted[row, length:].any()


def test_permutations_are_all_as_likely():
    generator = torch.Generator().manual_seed(0)
    weights = torch.tensor([1.0, 2, 3, 0]).expand(6000, 4)
    real = torch.tensor([True, True, True, False]).expand(6000, 4)
    orders = changed(weights, real, "permuted", generator)
    _, counts = torch.unique(orders, dim=0, return_counts=True)
    assert len(counts) == 6
    assert (counts - 1000).abs().max() < 150


@pytest.mark.parametrize("corpus", [small_corpus(), small_pairs()], ids=["single", "pair"])
def test_a_classifier_s_outputs_are_those_under_the_weights(corpus):
    model = train(corpus, epochs=1, hidden_size=4, embedding_size=6, min_df=1, progress=False).model
    test = corpus.splits["test"]
    batch = model.encoded(test.texts, test.labels).batch(range(8))
    with torch.no_grad():
        own, weights = classified(model, batch, "learned")
        expected, expected_weights = model(batch)
        torch.testing.assert_close(own, expected)
        torch.testing.assert_close(weights, expected_weights)
        for name in ("uniform", "permuted"):
            outputs, weights = classified(model, batch, name, torch.Generator().manual_seed(3))
            imposed, _ = model.outputs(model.embed(batch), batch, weights)
            torch.testing.assert_close(outputs, imposed)


@torch.no_grad()
def test_a_translator_with_uniform_weights_is_the_uniform_translator():
    corpus = parallel()
    pieces = Pieces.learned((side for one in sentences(60) for side in one[:2]), 60)
    batch = Encoded.of(corpus.splits["test"], pieces).batch(range(5))
    models = {}
    for name in ("learned", "uniform"):
        torch.manual_seed(0)
        models[name] = EncoderDecoder(
            EncoderDecoderSettings(
                size=6, embedding=6, bidirectional=True, shared=False, attention=name
            ),
            len(pieces),
        ).eval()
    models["uniform"].load_state_dict(models["learned"].state_dict(), strict=False)
    source, lengths, inputs, _ = batch
    found = translated(models["learned"], batch, "uniform")
    torch.testing.assert_close(found, models["uniform"](source, inputs, lengths)[0])
    own = translated(models["learned"], batch, "learned")
    torch.testing.assert_close(own, models["learned"](source, inputs, lengths)[0])


def test_a_reproduction_has_every_task_and_resumes_to_the_same_bytes(tmp_path):
    data = {"single": small_corpus(), "pair": small_pairs(), "generation": parallel()}
    found = reproduce(**data, out=tmp_path / "run", **SMALL)
    out = found.folder
    assert len(found.rows) == 3 * 2 * 5
    assert found.missing == 0
    kept = {name: (out / name).read_bytes() for name in ("result.md", "result.csv")}
    (out / "parts" / "pair-permuted-1.parquet").unlink()
    reproduce(**data, out=out, **SMALL)
    assert {name: (out / name).read_bytes() for name in kept} == kept


def made(costs, seeds=6):
    """Make rows whose changes cost so much of an accuracy of .9, by task; chance is .5."""
    rng = np.random.default_rng(0)
    rows = []
    for task, cost in costs.items():
        for seed in range(seeds):
            shared = {"task": task, "data": "made", "seed": seed, "commonest": 0.5, "n": 1000}
            for training, test in [("learned", "learned"), *CHANGES]:
                value = 0.9 - (0 if (training, test) == ("learned", "learned") else cost)
                value += float(rng.normal(0, 0.001))
                rows.append({**shared, "training": training, "test": test, "accuracy": value})
    settings = VashishthSettings(**dict.fromkeys(costs, "x"), seeds=seeds)
    return Vashishth("made", settings, [], None, rows)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ({"single": 0.0, "pair": 0.2, "generation": 0.2}, ["survives"] * 3),
        ({"single": 0.1, "pair": 0.1, "generation": 0.3}, ["does not", "survives", "undecided"]),
        ({"single": 0.3, "pair": -0.1}, ["does not", "does not", "does not"]),
        ({"single": 0.0}, ["survives"]),
        ({"pair": 0.2}, ["survives"]),
        ({"pair": 0.2, "generation": 0.2}, ["survives"]),
    ],
)
def test_the_word_of_a_claim_follows_from_the_costs(costs, expected):
    assert [claim.verdict for claim in result(made(costs)).claims] == expected


def test_a_claim_shows_the_intervals_that_decide_it():
    pairs = made({"pair": 0.003}, seeds=3)
    (claim,) = result(pairs).claims
    for way, line in zip(CHANGES, claim.numbers, strict=True):
        low, high = mean_interval(pairs.costs("pair", way), 1 - 0.05 / len(CHANGES))
        assert line.endswith(f"[{signed(low)}, {signed(high)}]")


def test_one_seed_decides_nothing():
    found = result(made({"single": 0.0, "pair": 0.2}, seeds=1))
    assert [claim.verdict for claim in found.claims] == ["undecided"] * 3


def test_what_is_missing_is_said_in_a_line(heedmap, tmp_path):
    named_otherwise = tmp_path / "t.csv"
    named_otherwise.write_text("a,b\nfine,yes\nbad,no\n")
    for words, said in (
        (("x",), "expected --texts, --pairs or --sentences"),
        (
            ("x", "--texts", "reviews", "--pairs-dataset", "snli"),
            "--pairs-dataset: expected with --pairs",
        ),
        (("x", "--texts", "reviews", "--to", "en"), "expected with --sentences alone"),
        (("x", "--pairs", "reviews", "--out", tmp_path / "a"), "with --pairs-dataset"),
        (("x", "--texts", named_otherwise), "change the file instead"),
    ):
        found = heedmap("reproduce", "vashishth", *words)
        assert found.code == 2
        assert said in found.err
        assert "Traceback" not in found.err
