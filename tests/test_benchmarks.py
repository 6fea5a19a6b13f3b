import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.xmil import EVIDENCE, auprc_2, auprc_2_by_chance, ordering, page
from sklearn.metrics import average_precision_score

ROOT = Path(__file__).parents[1]


def called(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_list_has_a_line_for_every_benchmark():
    lines = called().stdout.splitlines()
    names = {path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")} - {"plain"}
    assert {line.split()[0] for line in lines} == names
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks").glob("[!_]*.py")), ids=lambda p: p.stem
)
def test_every_benchmark_finds_what_it_imports(path):
    assert importlib.import_module(f"benchmarks.{path.stem}").__doc__


def test_an_unknown_benchmark_is_one_line_before_anything_runs():
    refused = called("row_adam", "speed")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "speed" in refused.stderr
    assert not refused.stdout


def test_auprc_2_is_the_mean_of_the_average_precisions_of_both_signs():
    rng = np.random.default_rng(0)
    for _ in range(20):
        evidence, scores = rng.integers(-1, 2, 12), rng.normal(size=12)
        both = [average_precision_score(evidence == sign, sign * scores) for sign in (1, -1)]
        assert auprc_2(evidence, scores) == pytest.approx(np.mean(both))
        assert auprc_2(evidence, evidence.astype(float)) == 1
    # One sign alone; none, and the same for every item, say nothing.
    assert auprc_2(np.array([0, -1, 0]), np.array([1.0, -2.0, 0.5])) == 1
    assert np.isnan([auprc_2(np.full(3, sign), np.arange(3.0)) for sign in (-1, 0, 1)]).all()


def test_chance_is_the_mean_over_random_orders():
    rng = np.random.default_rng(0)
    evidence = np.array([1, 0, -1, 0, 1, -1, 0, 0])
    drawn = [auprc_2(evidence, rng.normal(size=8)) for _ in range(4000)]
    assert auprc_2_by_chance(evidence) == pytest.approx(np.mean(drawn), abs=0.01)


def test_the_evidence_of_the_toys_is_for_and_against_each_class():
    digits = np.array([8, 9, 1, 2, 4])
    assert EVIDENCE["four_bags"](digits, "0").tolist() == [-1, -1, 0, 0, 0]
    assert EVIDENCE["four_bags"](digits, "1").tolist() == [1, -1, 0, 0, 0]
    assert EVIDENCE["four_bags"](digits, "2").tolist() == [-1, 1, 0, 0, 0]
    assert EVIDENCE["four_bags"](digits, "3").tolist() == [1, 1, 0, 0, 0]
    assert EVIDENCE["pos_neg"](digits, "1").tolist() == [1, -1, 0, 0, 1]
    assert EVIDENCE["pos_neg"](digits, "0").tolist() == [-1, 1, 0, 0, -1]
    assert EVIDENCE["adjacent_pairs"](digits, "1").tolist() == [0, 0, 1, 1, 0]
    assert EVIDENCE["adjacent_pairs"](digits, "0").tolist() == [0, 0, -1, -1, 0]
    assert EVIDENCE["digit-bags"](digits, "nine").tolist() == [0, 1, 0, 0, 0]
    assert EVIDENCE["digit-bags"](digits, "no nine").tolist() == [0, -1, 0, 0, 0]


def test_the_page_says_what_is_better_only_where_the_seeds_agree():
    seed = {"attention": 0.5, "gradient × input": 0.6, "leave-one-out": 0.4, "single item": 0.7}
    seed |= {"chance": 0.3, "AUROC": 0.9, "accuracy": 0.8}
    unsteady = {**seed, "single item": 0.3}
    text = page({"four_bags": [seed, seed, unsteady]}, "gated")
    assert "*4-Bags*: attention is 0.200 [0.200, 0.200] above chance" in text
    assert "; better: gradient × input; worse: leave-one-out." in text
    assert "| attention | 0.500 [0.500, 0.500] | 0.53 ± 0.00 |" in text
    assert "Published: single item > gradient × input > attention" in text
    assert ordering({"a": 1.0, "b": 2.0}) == "b > a"
