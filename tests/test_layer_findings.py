"""Findings about a model's layers and heads, from tables with planted answers."""

import numpy as np
import pyarrow as pa
import pytest
from made_scans import MAPS, normal, results

from heedmap.experiments.questions.scan import _certain
from heedmap.experiments.registry import registered

BEST = MAPS.index(("row", 1, 1))


def layer_findings(results):
    offered = [registered()[name] for name in ("scan", "heads") if name in results.tables]
    return [finding for experiment in offered for finding in experiment.findings(results)]


def accounted(finding, total):
    return finding.n + sum(finding.left_out.values()) == total


def test_the_best_map_is_found_and_measured_on_the_texts_that_did_not_choose_it():
    taus = 0.1 * normal(40, len(MAPS))
    taus[:, BEST] += 0.7
    (found,) = layer_findings(results(taus, total=60))
    assert "best of 7 maps: row, layer 1, head 1" in found.measure
    assert "1 lie above 0.4 for certain" in found.meaning
    assert found.left_out == {"not sampled for the scan": 20, "used to choose the map": 20}
    assert found.n == 20
    assert found.value == pytest.approx(0.7, abs=0.1)
    assert accounted(found, 60)


def test_the_mean_over_heads_and_views_without_heads_are_called_so():
    for best, name in (
        (("row", 0, None), "row, layer 0"),
        (("rollout", 1, None), "rollout, layer 1"),
    ):
        taus = 0.1 * normal(20, len(MAPS))
        taus[:, MAPS.index(best)] += 0.7
        (found,) = layer_findings(results(taus))
        assert found.measure.endswith(f": {name}, mean over heads")


def test_the_best_of_many_maps_of_noise_has_no_winners_luck():
    maps = [("row", layer, head) for layer in range(12) for head in range(12)]
    honest, lucky = [], []
    for seed in range(20):
        taus = 0.3 * normal(40, len(maps), seed=seed)
        (found,) = layer_findings(results(taus, maps))
        assert "0 lie above" in found.meaning
        honest.append(found.value)
        lucky.append(taus.mean(0).max())
    assert np.mean(lucky) > 0.1
    assert abs(np.mean(honest)) < 0.05  # 0.015 is one standard error


def test_a_map_that_is_the_same_for_all_words_ranks_none_of_them():
    taus = 0.1 * normal(40, len(MAPS))
    taus[:, BEST] += 0.7
    taus[::2, BEST] = np.nan  # it counts as tau 0 in half of the texts
    taus[:, 0] = np.nan  # never defined: not one of the maps
    (found,) = layer_findings(results(taus))
    assert "best of 6 maps: row, layer 1, head 1" in found.measure
    assert found.value == pytest.approx(0.7, abs=0.1)
    assert "0 lie above 0.4 for certain" in found.meaning
    assert found.left_out["undefined: a measure is the same for all tokens"] > 5
    assert accounted(found, 40)
    taus[:, 1] += 0.45  # always there, and better than 0.7 in half of the texts
    (found,) = layer_findings(results(taus))
    assert "best of 6 maps: row, layer 0, head 0" in found.measure


@pytest.mark.parametrize("reason", ["not computed", "constant"])
def test_a_map_that_is_there_for_a_few_texts_does_not_win_by_luck(reason):
    """Noise: of three texts the mean is far from 0, of three hundred it is not."""
    maps = [("row", layer, None) for layer in range(30)] + [("flow", 0, None)]
    for seed in range(20):
        taus = 0.3 * normal(150, len(maps), seed=seed)
        taus[6:, -1] = np.nan
        taus[:6, -1] = 0.9
        computed = np.isfinite(taus) if reason == "not computed" else None
        (found,) = layer_findings(results(taus, maps, computed=computed))
        assert ": row, layer" in found.measure
        assert found.n == 75
        assert found.left_out == {"used to choose the map": 75}
        assert "0 lie above" in found.meaning
        note = "not compared, for it is there for 4% of the texts: flow not computed: text longer"
        assert (note in found.meaning) == (reason == "not computed")
        constant = "not compared, for they are the same for all words of most texts: 1 maps"
        assert (constant in found.meaning) == (reason == "constant")
        assert "best of 30 maps" in found.measure


def test_maps_are_compared_on_the_texts_that_all_of_them_were_computed_for():
    maps = [("row", 0, None), ("flow", 0, None), ("flow", 1, None)]
    taus = 0.05 * normal(100, 3) + [0.5, 0.3, 0.6]
    taus[:5, 0] = -1.0  # of texts without a flow
    taus[:5, 1:] = np.nan
    (found,) = layer_findings(results(taus, maps, total=110, computed=np.isfinite(taus)))
    assert "best of 3 maps: flow, layer 1" in found.measure
    assert "not compared" not in found.meaning
    assert "2 lie above 0.4 for certain" in found.meaning
    assert accounted(found, 110)
    left_out = found.left_out
    assert left_out.pop("flow not computed: text longer than 64 positions") == 5
    assert left_out.pop("not sampled for the scan") == 10
    assert left_out.keys() == {"used to choose the map"}
    taus[5:, 0] += 0.3
    (found,) = layer_findings(results(taus, maps, computed=np.isfinite(taus)))
    assert found.measure.endswith(": row, layer 0, mean over heads")
    assert found.value == pytest.approx(0.8, abs=0.05)  # not of the texts without a flow


def test_a_text_that_no_map_ranks_is_not_one_to_choose_by():
    taus = 0.1 * normal(40, len(MAPS))
    taus[:, BEST] += 0.7
    taus[:10] = np.nan  # leave-one-out is the same for all words
    (found,) = layer_findings(results(taus))
    assert found.left_out["undefined: a measure is the same for all tokens"] == 10
    assert found.n + found.left_out["used to choose the map"] == 30
    assert accounted(found, 40)


def test_a_corpus_of_single_words_has_no_best_map():
    (found,) = layer_findings(results(np.full((6, len(MAPS)), np.nan), tokens=1))
    assert np.isnan(found.value)
    assert found.n == 0
    assert "none: too few texts with two words" in found.measure
    assert "0 lie above" in found.meaning
    assert accounted(found, 6)


def test_a_single_text_cannot_choose_a_map_and_measure_it():
    (found,) = layer_findings(results(0.7 + np.zeros((1, len(MAPS)))))
    assert np.isnan(found.value)
    assert found.n == 0
    assert "none: too few texts with two words" in found.measure
    assert accounted(found, 1)


# --- certainty --------------------------------------------------------------------------------------------


def planted(mean, spread, n):
    """n numbers of exactly this mean and standard deviation."""
    values = normal(n)
    return mean + spread * (values - values.mean()) / values.std(ddof=1)


def test_only_means_that_lie_clearly_above_are_certain():
    columns = [planted(0.6, 0.1, 30), planted(0.42, 0.5, 30), planted(0.2, 0.1, 30)]
    assert _certain(np.stack(columns, axis=1), np.arange(30), 0.4) == 1
    assert _certain(np.stack(columns, axis=1), np.arange(30), 0.1) == 3


def test_a_map_among_many_needs_more_to_be_certain():
    # 3.5 standard errors above: beyond the t-quantile at .975 with 9 degrees of freedom (2.26), below
    # the one that 1000 intervals need to hold at once (5.3).
    one = planted(0.4 + 3.5 / np.sqrt(10) * 0.1, 0.1, 10)[:, None]
    assert _certain(one, np.arange(10), 0.4) == 1
    assert _certain(np.hstack([one, 0.1 * normal(10, 999)]), np.arange(10), 0.4) == 0


def test_what_one_text_defines_is_never_certain():
    values = np.full((5, 3), np.nan)
    values[:, 0] = planted(0.9, 0.01, 5)
    values[0, 1] = 0.9
    assert _certain(values, np.arange(5), 0.4) == 1
    assert _certain(values[:, 1:], np.arange(5), 0.4) == 0
    assert _certain(values[:, :0], np.arange(5), 0.4) == 0


# --- what heads do ----------------------------------------------------------------------------------------


def heads_of(texts=4, layers=3, heads=2):
    """Each number names its text, layer and head: 0.1 layer + 0.01 head + 0.001 text."""
    row, layer, head = (part.ravel() for part in np.indices((texts, layers, heads)))
    words = 0.1 * layer + 0.01 * head + 0.001 * row
    return pa.table(
        {
            "row": row, "layer": layer, "head": head, "row_on_words": words,
            "share_words": words, "share_punctuation": 0 * words, "share_[CLS]": 0.5 + 0.1 * layer,
            "share_[PAD]": 0 * words, "effective_share": words, "free_on_simplex": row, "rank": 5 + row,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "mean", "mass"),
    [
        ({}, 0.205, "70%"),
        ({"layer": 0, "head": 1}, 0.01, "50%"),
        ({"layer": -2, "head": -2}, 0.1, "60%"),
    ],
)
def test_the_layer_and_head_on_trial_are_the_ones_that_count(shown, mean, mass):
    taus = normal(4, len(MAPS))
    _, words, identified = layer_findings(results(taus, total=5, heads=heads_of(), **shown))
    for found in (words, identified):
        assert found.value == pytest.approx(mean + 0.0015)
        assert found.left_out == {"not sampled": 1}
        assert accounted(found, 5)
    assert words.meaning.endswith(f"they get: [CLS] {mass}")
    assert "75% of all text-head pairs have room" in identified.meaning
    assert "longest rank 8" in identified.meaning
