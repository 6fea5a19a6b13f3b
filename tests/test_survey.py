"""The survey's open questions: measures against slow versions, and the whole command on small data."""

import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import contents

import heedmap as hm
from heedmap.errors import InputError
from heedmap.experiments.seed_intervals import bounded_interval, mean_interval
from heedmap.measures import conicity, jensen_shannon, mean_cosine
from heedmap.papers.kit.learned import Learned
from heedmap.papers.survey import paper
from heedmap.papers.survey.cells import cells
from heedmap.papers.survey.correlations import correlation_claim
from heedmap.papers.survey.figures import BINS, counts_by_width, negative_weights, whiskers
from heedmap.papers.survey.fooling import length_correlation, paired_differences
from heedmap.papers.survey.needs import Need, needs
from heedmap.papers.survey.numbers import (
    SequenceModel,
    TextModel,
    rank_correlation,
)
from heedmap.papers.survey.paper import reproduce, task_of
from heedmap.papers.survey.result import result
from heedmap.papers.survey.settings import SurveySettings
from heedmap.papers.survey.texts import farthest
from heedmap.papers.survey.uniform_cost import need_claims

TINY = {
    "encoders": ("average",), "normalisers": ("softmax", "sparsemax"), "sizes": (8,), "seeds": 2,
    "epochs": 1, "adversary_texts": 6, "train_pairs": 30, "pair_epochs": 1, "workers": 1,
}  # fmt: skip


@pytest.mark.parametrize("lengths", [(0, 1, 2), (5, 3, 7)])
def test_likeness_of_states_is_that_of_all_pairs(lengths):
    rng = np.random.default_rng(0)
    width = 8
    vectors = torch.from_numpy(rng.normal(size=(len(lengths), width, 4)))
    vectors[2, 0] = 0
    mask = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)
    for row, length in enumerate(lengths):
        if length < 2:
            assert mean_cosine(vectors, mask)[row].isnan()
            assert conicity(vectors, mask)[row].isnan()
            continue
        real = vectors[row, :length]
        pairs = [
            float(torch.cosine_similarity(real[i], real[j], dim=0))
            for i in range(length)
            for j in range(length)
            if i != j
        ]
        with_mean = [float(torch.cosine_similarity(v, real.mean(0), dim=0)) for v in real]
        assert float(mean_cosine(vectors, mask)[row]) == pytest.approx(np.mean(pairs))
        assert float(conicity(vectors, mask)[row]) == pytest.approx(np.mean(with_mean))


def test_equal_states_are_alike_and_orthogonal_ones_are_not():
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert float(mean_cosine(torch.ones(1, 3, 2), mask)) == pytest.approx(1)
    assert float(mean_cosine(torch.eye(3).unsqueeze(0), mask)) == pytest.approx(0)
    assert float(conicity(torch.eye(3).unsqueeze(0), mask)) == pytest.approx(1 / math.sqrt(3))


def test_no_weights_are_farther_than_the_farthest_corner():
    rng = np.random.default_rng(0)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False]])
    attention = torch.from_numpy(rng.dirichlet(np.ones(4), 3)) * mask
    attention = attention / attention.sum(-1, keepdim=True)
    tried = torch.from_numpy(rng.dirichlet(np.full(4, 0.3), (500, 3))) * mask
    tried = tried / tried.sum(-1, keepdim=True)
    ceiling = farthest(attention, mask)
    assert bool((jensen_shannon(attention.expand_as(tried), tried) <= ceiling + 1e-12).all())
    assert float(ceiling[2]) == 0
    assert bool((ceiling <= math.log(2) + 1e-12).all())


def each_its_own(values):
    """Names of data sets, of which each model has its own."""
    return [str(i) for i, _ in enumerate(values)]


def test_a_rank_correlation_has_an_interval_of_enough_data_sets():
    rng = np.random.default_rng(0)
    x = rng.normal(size=12)
    for y in (x, -x, x + rng.normal(size=12)):
        rho = rank_correlation(x, y, each_its_own(x))
        ranks = np.argsort(np.argsort(x)), np.argsort(np.argsort(y))
        assert rho.value == pytest.approx(np.corrcoef(*ranks)[0, 1])
        assert -1 <= rho.low < rho.high <= 1
        assert rho.low <= rho.value <= rho.high
    found = rank_correlation([*x, math.nan], [*x, 1.0], [*each_its_own(x), "last"])
    assert (found.models, found.data_sets) == (12, 12)
    for short in ([], [1.0, 2, 3], [1.0, 1, 1, 1]):
        assert math.isnan(rank_correlation(short, short, each_its_own(short)).low)
    few = rank_correlation(x, x, ["a", "b", "c"] * 4)
    assert few.value == pytest.approx(1)
    assert math.isnan(few.low)
    assert math.isnan(few.high)


@pytest.mark.parametrize(("models", "shared"), [(1, 0.0), (6, 0.0), (6, 1.0), (6, 30.0)])
def test_the_interval_of_unrelated_numbers_holds_zero_19_times_of_20(models, shared):
    """Also where models of a data set are alike: the interval of so many models would be too narrow."""
    rng = np.random.default_rng(0)
    data = np.repeat(each_its_own(range(9)), models)
    held = 0
    for _ in range(400):
        x, y = (
            rng.normal(size=9 * models) + shared * np.repeat(rng.normal(size=9), models)
            for _ in range(2)
        )
        rho = rank_correlation(x, y, data)
        held += rho.low <= 0 <= rho.high
    assert held / 400 >= 0.91


def test_the_word_of_a_claim_follows_from_its_interval():
    def need(learned, uniform):
        return Need("classification", "a", learned, uniform, (0.0, 0.0, 0.0), 0.5, "9 texts")

    for costs, verdict in (
        ([0.3, 0.31, 0.32], "survives"),
        ([-0.3, -0.31, -0.32], "does not"),
        ([0.3, -0.3, 0.1], "undecided"),
    ):
        (claim,) = need_claims([need(costs, [0.0] * 3)], Learned({}))
        assert claim.verdict == verdict
    falling = rank_correlation(range(9), range(9, 0, -1), each_its_own(range(9)))
    assert correlation_claim("x", "y", falling, -1).verdict == "survives"
    assert correlation_claim("x", "y", falling, 1).verdict == "does not"
    for few in (
        rank_correlation([1.0], [1.0], ["a"]),
        rank_correlation(range(9), range(9), list("abc") * 3),
    ):
        assert correlation_claim("x", "y", few, 1).verdict == "undecided"


def test_no_interval_of_a_difference_of_shares_is_beyond_one():
    assert bounded_interval([-0.9, 0.9]) == (-1, 1)
    assert bounded_interval([0.3, 0.31, 0.32]) == mean_interval([0.3, 0.31, 0.32])
    assert all(math.isnan(end) for end in bounded_interval([0.3]))


def test_sequences_are_compared_seed_by_seed():
    models = [
        SequenceModel("copy", attention, seed, accuracy, 0.2, 0.1, 40)
        for attention, accuracy in (("learned", 0.9), ("uniform", 0.5))
        for seed in range(2)
    ]
    (need,) = needs([], models[:-1])  # the second seed's twin is missing
    assert need.costs == pytest.approx([0.4])
    (need,) = needs([], models)
    assert (need.task, len(need.costs), need.cost) == ("copying", 2, pytest.approx(0.4))
    assert need.at_test == pytest.approx((0.7, *mean_interval([0.7, 0.7])))


def model(encoder="lstm", size=8, jsd=(0.1, 0.2, 0.3), **columns):
    about = {"data": "d", "encoder": encoder, "normaliser": "softmax", "size": size}
    table = pa.table({"n_tokens": [2, 3, 4], "jsd": list(jsd), "text": [0, 1, 2], **columns})
    return TextModel(about, table)


def test_models_are_compared_that_differ_in_one_thing_alone():
    models = [model(), model("cnn", jsd=(0.2, 0.3, 0.4)), model("cnn", 16)]
    assert paired_differences(models, "encoder") == {
        "cnn less lstm": [("d", pytest.approx(0.1 / math.log(2)))]
    }
    assert list(paired_differences(models, "size")) == ["16 less 8"]
    assert length_correlation(models[0]) == pytest.approx(1)
    assert math.isnan(length_correlation(model(jsd=(0.1, 0.1, 0.1))))


def test_areas_count_the_texts_whose_random_word_mattered_more():
    counted = model(
        weight_top=[0.5, 0.95, 1.0], weight_random=[0.45, 0.1, 0.0],
        js_top=[0.0, 0.0, 0.2], js_random=[0.1, 0.3, 0.1],
    )  # fmt: skip
    assert negative_weights(counted) == pytest.approx([0.05, 0.85])
    counts = counts_by_width(negative_weights(counted), 0.1)
    assert counts.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert counts_by_width(np.array([0.0, 0.02, 0.2]), 0.02).tolist() == [1, 1, *[0] * 7, 1]
    assert counts_by_width(np.array([]), 0.1).tolist() == [0] * BINS


def test_whiskers_end_at_a_text_within_reach():
    values = np.array([0.0, 0.4, 0.45, 0.5, 0.55, 0.6, np.inf])
    lower, low, middle, high, upper = whiskers(values)
    assert (lower, middle, upper) == (0.4, 0.5, 0.6)
    assert low == pytest.approx(0.425)
    assert high == pytest.approx(0.575)
    assert whiskers(np.array([0.3])) == (0.3,) * 5


def test_sequences_come_first_and_models_that_are_trained_again_before_the_others():
    settings = SurveySettings.of(
        names=["a"], fingerprints=["f"], data=[hm.load("reviews").settings], seeds=2
    )
    listed = cells(settings)
    assert len({str(cell) for cell in listed}) == len(listed) == 3 + 8 + 6
    assert [cell.columns.get("retrained") for cell in listed[7:12]] == [None, *[True] * 3, False]


@pytest.fixture(scope="module")
def corpora():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some answers of so few stories are rare
        return [hm.load(name, train_texts=60, test_texts=20) for name in ("reviews", "babi_qa1")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_it_runs_and_resumes_to_the_same_bytes(corpora, tmp_path, monkeypatch):
    assert [task_of(corpus) for corpus in corpora] == ["classification", "question answering"]
    done = reproduce(corpora, out=tmp_path / "whole", **TINY)
    assert done.missing == 0
    text = (tmp_path / "whole" / "result.md").read_text()
    for words in ("question answering", "copying", "translation", "at most", "ρ"):
        assert words in text
    assert {figure.key for figure in result(done).figures} <= {"negative-areas", "erased-whiskers"}
    original, seen = paper.compute, []

    def stop_at_the_fourth(cell, checkpoints, *, shared):
        seen.append(str(cell))
        if len(seen) == 4:
            raise KeyboardInterrupt
        return original(cell, checkpoints, shared=shared)

    monkeypatch.setattr(paper, "compute", stop_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        reproduce(corpora, out=tmp_path / "again", **TINY)
    reproduce(corpora, out=tmp_path / "again", **TINY)
    assert contents(tmp_path / "whole") == contents(tmp_path / "again")


def test_bad_input_is_refused(corpora, tmp_path):
    for options in ({"sizes": (2,)}, {"encoders": ("lstm", "lstm")}, {"seeds": 1}):
        with pytest.raises(InputError):
            reproduce(corpora, out=tmp_path / "run", **{**TINY, **options})
    with pytest.raises(InputError, match="at most once"):
        reproduce([corpora[0], corpora[0]], out=tmp_path / "run", **TINY)
    assert not (tmp_path / "run").exists()


def test_a_data_set_of_a_paper_is_read_by_its_rules(heedmap, tmp_path):
    lines = [
        f'{{"premise": "a dog runs {i}", "hypothesis": "it {word}", "label": "{label}"}}'
        for i in range(12)
        for label, word in (
            ("entailment", "moves"),
            ("contradiction", "sits"),
            ("neutral", "barks"),
        )
    ]
    (tmp_path / "SNLI").mkdir()
    for split in ("train", "dev", "test"):
        (tmp_path / "SNLI" / f"{split}.jsonl").write_text("\n".join(lines))
    for data, said in (
        (f"snli={tmp_path / 'SNLI'}", "sizes"),  # read, so that the size is what is wrong
        (str(tmp_path / "SNLI"), "sizes"),
        (f"snli={tmp_path / 'none'}", str(tmp_path / "none")),
        (f"verse={tmp_path / 'SNLI'}", "expected one of sst"),
    ):
        found = heedmap(
            "reproduce", "survey", "--data", data, "--sizes", "2", "--out", tmp_path / "a"
        )
        assert found.code == 2
        assert said in found.err
        assert "Traceback" not in found.err
