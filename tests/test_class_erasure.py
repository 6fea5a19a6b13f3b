"""What speaks for and against each class: the table against one erasure after the other, text by text."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import random_pairs, random_texts, small_model
from making import evidence_of
from scipy import stats
from tiny_transformers import tiny_classifier

from heedmap.counterfactual import weight_erasure as closed
from heedmap.counterfactual.row_weights import permuted
from heedmap.data.texts import Pair
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods import erasure_predictions as erased
from heedmap.experiments.methods.class_sides import SIDES, changes
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.pooling import by_text
from heedmap.experiments.questions import class_erasure as experiment
from heedmap.experiments.registry import make_findings
from heedmap.measures import log_odds
from heedmap.models.pair_classifier import PairClassifier
from heedmap.report.class_figures import by_class
from heedmap.settings.audit import AuditSettings
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings

SETTINGS = AuditSettings(search_instances=12)
LENGTHS = [1, 2, 3, 5, 8, 8, 12, 1, 4, 20]
CLASSES = pytest.mark.parametrize("classes", [2, 3, 4])


def held(classes=3, settings=SETTINGS, texts=None, **changed):
    model = small_model("average", classes=classes)
    for parameter in model.parameters():  # apart from each other, so that classes change places
        parameter.mul_(3.0)
    return evidence_of(model, texts or random_texts(LENGTHS), settings, **changed)


def texts_of(evidence):
    """Weights, relevance, bias and prediction of each text with more than one token, by row."""
    for trace in evidence.traces:
        weights, relevance, bias = linear(trace)
        for i, row in enumerate(trace.rows.tolist()):
            real = trace.mask[i]
            if real.sum() > 1:
                yield row, weights[i, real], relevance[i, real], bias, int(trace.predicted[i])


def effects(weights, relevance, bias, c):
    """What the log-odds of a class gain without each token: erase, divide, decode."""
    found = []
    before = log_odds(weights @ relevance + bias, c)
    for place in range(len(weights)):
        left = weights.clone()
        left[place] = 0.0
        found.append(float(log_odds((left / left.sum()) @ relevance + bias, c) - before))
    largest = float((weights @ relevance + bias).abs().max().clamp(min=1))
    unit = 8 * np.finfo(np.float32).eps * largest
    return np.round(np.array(found) / unit) * unit


@CLASSES
def test_shares_weights_and_tau_are_those_of_erasing_one_weight_after_another(classes):
    evidence = held(classes)
    table = evidence.table("class_erasure").to_pandas().set_index(["row", "class"])
    seen = 0
    for row, weights, relevance, bias, predicted in texts_of(evidence):
        shares = (weights @ relevance + bias).softmax(-1)
        for c in [predicted] if classes == 2 else range(classes):
            line = table.loc[(row, c)]
            change = effects(weights, relevance, bias, c)
            assert line.predicted == predicted
            assert line.probability == pytest.approx(float(shares[c]), abs=1e-6)
            for side, on_it in zip(SIDES, (change < 0, change > 0), strict=True):
                assert line[f"share_{side}"] == pytest.approx(on_it.mean())
                assert line[f"weight_{side}"] == pytest.approx(
                    float(weights[on_it].sum()), abs=1e-6
                )
                size = np.abs(change[on_it])
                if on_it.sum() < 2:
                    assert np.isnan(line[f"tau_{side}"])
                    continue
                tau = stats.kendalltau(weights[on_it].numpy(), size).statistic
                assert line[f"tau_{side}"] == pytest.approx(tau)
                assert line[f"tau_{side}"] <= line[f"tau_{side}_largest"] + 1e-12
                seen += 1
    assert len(table) == 8 * (1 if classes == 2 else classes)
    assert seen >= 8


@CLASSES
def test_counts_are_those_of_each_class_and_of_two_classes_they_are_in_another_table(classes):
    evidence = held(classes)
    table = evidence.table("class_erasure").to_pandas().set_index(["row", "class"])
    flips = evidence.table("decision_flips").to_pandas()
    counts = table[[f"count_{name}" for name in experiment.COUNTS]]
    assert counts[table.predicted == table.index.get_level_values("class")].isna().all(axis=None)
    if classes == 2:
        return
    for row, weights, relevance, bias, predicted in texts_of(evidence):
        mask = torch.ones(1, len(weights), dtype=torch.bool)
        rest = (weights[None], relevance[None], bias, mask, torch.tensor([predicted]))
        exact = closed.smallest_each(*rest)[0].count[0]
        for c in range(classes):
            if c == predicted:
                continue
            line = table.loc[(row, c)]
            only = [tensor[..., [predicted, c]] for tensor in rest[1:3]]
            two = (weights[None], *only, mask, torch.tensor([0]))  # as if there were no third
            lead = relevance[:, predicted] - relevance[:, c]
            assert line.count_exact == exact[c] == closed.smallest(*two)[0].count[0]
            assert line.count_attention == closed.along(weights[None], *two).count[0]
            product = closed.along((weights * lead)[None], *two).count[0]
            assert line.count_product == product
            assert line.count_exact <= product or product == 0
            assert np.isnan(line.efficiency_chance) or exact[c] > 0
            assert not line.efficiency_chance > 1
        others = table.loc[row].count_exact
        least = others[others > 0].min()
        assert flips.count_exact[row] == (0 if np.isnan(least) else least)


def test_chance_is_that_of_the_weights_in_other_orders_with_everything_computed_again():
    evidence = held(3)
    table = evidence.table("class_erasure").to_pandas().set_index(["row", "class"])
    compared = 0
    for trace in evidence.traces:
        rngs = evidence.generators("class_erasure", trace.rows)
        shuffles = torch.cat(list(permuted(trace.attention, trace.support, erased.SHUFFLES, rngs)))
        for i, row in enumerate(trace.rows.tolist()):
            real = trace.mask[i]
            if real.sum() < 2:
                continue
            relevance = trace.readout.relevance[i, 0, real].double()
            bias = trace.readout.bias.double()
            for c in range(3):
                for side, sign in zip(SIDES, (-1, 1), strict=True):
                    taus = []
                    for shuffled in shuffles[:, i, 0, real].double():
                        weights = shuffled / shuffled.sum()
                        change = sign * effects(weights, relevance, bias, c)
                        on_it = change > 0
                        if on_it.sum() > 1:
                            pair = weights[on_it].numpy(), change[on_it]
                            taus.append(stats.kendalltau(*pair).statistic)
                    taus = [tau for tau in taus if np.isfinite(tau)]
                    found = table.loc[(row, c)][f"tau_{side}_chance"]
                    assert found == pytest.approx(np.mean(taus)) if taus else np.isnan(found)
                    compared += len(taus)
    assert compared > 100


def test_chance_of_putting_a_class_ahead_is_that_of_shuffled_weights_and_their_own_smallest_sets():
    evidence = held(3)
    table = evidence.table("class_erasure").to_pandas().set_index(["row", "class"])
    compared = 0
    for trace in evidence.traces:
        rngs = evidence.generators("class_erasure", trace.rows)
        shuffles = torch.cat(list(permuted(trace.attention, trace.support, erased.SHUFFLES, rngs)))
        for i, row in enumerate(trace.rows.tolist()):
            real = trace.mask[i]
            if real.sum() < 2:
                continue
            relevance = trace.readout.relevance[i, 0, real].double()[None]
            bias, mask = (
                trace.readout.bias.double(),
                torch.ones(1, int(real.sum()), dtype=torch.bool),
            )
            for c in range(3):
                found, shares = table.loc[(row, c)], []
                if not found.count_exact > 0:
                    assert np.isnan(found.efficiency_chance)
                    continue
                for weights in shuffles[:, i, 0, real].double():
                    predicted = int((weights @ relevance[0] + bias).argmax())
                    if predicted == c:
                        continue
                    # As if there were no other classes.
                    pair = relevance[..., [predicted, c]], bias[[predicted, c]]
                    rest = (weights[None] / weights.sum(), *pair, mask, torch.tensor([0]))
                    least = int(closed.smallest(*rest)[0].count)
                    along = int(closed.along(weights[None], *rest).count)
                    shares += [least / along if along else 0.0] if least else []
                wanted = np.mean(shares) if shares else np.nan
                assert found.efficiency_chance == pytest.approx(wanted, nan_ok=True)
                compared += len(shares)
    assert compared > 10


def test_a_token_that_speaks_against_each_of_three_classes_can_be_told():
    # Readings of three tokens: one for the first class, one that only lowers the third, one of nothing.
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    relevance = torch.tensor([[4.0, 0, 0], [0, 0, -4.0], [0, 0, 0]], dtype=torch.float64)
    change = effects(weights, relevance, torch.zeros(3, dtype=torch.float64), 2)
    assert change[1] > 0 > change[2], "it speaks against the third class alone"
    assert (weights @ relevance).argmax() == 0
    rest = (weights[None], relevance[None], torch.zeros(3).double(), torch.ones(1, 3).bool())
    flip, _ = closed.smallest_each(*rest, torch.tensor([0]))
    assert flip.count.tolist() == [[0, 0, 0]], "and no erasure makes any other class win"


def test_what_rounding_can_cause_speaks_neither_for_nor_against():
    texts = [["w01"] * 5, ["w01", "w01"], ["w02", "w02", "w03"]]
    evidence = held(3, texts=texts)
    table = evidence.table("class_erasure").to_pandas().set_index("row")
    assert (
        table.loc[[0, 1], ["share_for", "share_against", "weight_for", "weight_against"]] == 0
    ).all(axis=None)
    assert table.loc[[0, 1], ["tau_for", "tau_against"]].isna().all(axis=None)
    assert (table.loc[2, "share_for"] + table.loc[2, "share_against"] > 0.99).all()


def test_of_many_classes_the_likeliest_are_asked(monkeypatch):
    evidence = held(6)
    whole = evidence.table("class_erasure").to_pandas()
    monkeypatch.setattr(experiment, "MOST", 3)
    some = held(6).table("class_erasure").to_pandas()
    likeliest = whole.sort_values("probability", ascending=False).groupby("row").head(3)
    likeliest = likeliest.sort_values(["row", "class"]).reset_index(drop=True)
    np.testing.assert_allclose(
        some.drop(columns="sampled").to_numpy(float),
        likeliest.drop(columns="sampled").to_numpy(float),
    )
    assert (some.groupby("row").size() == 3).all()


def test_tau_is_asked_of_a_sample_and_what_is_not_is_counted():
    evidence = held(3, AuditSettings(search_instances=4), random_texts([6] * 12))
    table = evidence.table("class_erasure").to_pandas()
    assert table[table.sampled].row.nunique() == 4
    assert table[~table.sampled].filter(like="tau").isna().all(axis=None)
    assert table.share_against.notna().all()
    tables = {name: evidence.table(name) for name in ("instances", "class_erasure")}
    found = {f.key: f for f in make_findings(tables, SETTINGS, ["a", "b", "c"])}
    assert found["class_against"].left_out["not sampled"] == 8
    assert sum(found["class_against"].left_out.values()) + found["class_against"].n == 12


@CLASSES
def test_findings_are_means_over_texts_of_means_over_classes(classes):
    evidence = held(classes)
    tables = {name: evidence.table(name) for name in ("instances", "class_erasure")}
    names = [f"c{i}" for i in range(classes)]
    found = {f.key: f for f in make_findings(tables, SETTINGS, names)}
    frame = tables["class_erasure"].to_pandas()
    by_row = frame.groupby("row")
    against = found["class_against"]
    assert against.value == pytest.approx(by_row.tau_against.mean().mean())
    assert against.level == "for comparison"
    assert against.relative.chance == pytest.approx(
        by_row.tau_against_chance.mean()[by_row.tau_against.mean().notna()].mean()
    )
    assert against.left_out["one token: nothing else is left"] == 2
    assert against.n + sum(against.left_out.values()) == len(LENGTHS)
    assert ("speaks for the other" in against.meaning) == (classes == 2)
    fair = by_row[["tau_for", "tau_for_chance"]].mean().dropna()
    for value in fair.mean():
        assert f" {value:.2f}".replace("-", "−") in against.meaning
    assert f"n = {len(fair)})" in against.meaning
    if classes == 2:
        assert list(found) == ["skill", "class_against"]
        return
    some = frame[frame.count_exact > 0]
    share = np.where(some.count_attention > 0, some.count_exact / some.count_attention, 0.0)
    flips = found["class_flips"]
    assert flips.value == pytest.approx(some.assign(x=share).groupby("row").x.mean().mean())
    assert flips.n + sum(flips.left_out.values()) == len(LENGTHS)
    never = (frame.count_exact == 0).sum() / frame.count_exact.notna().sum()
    assert f"{never:.0%} of the other classes" in flips.meaning


@CLASSES
def test_texts_without_two_tokens_leave_an_empty_table_and_undefined_findings(classes):
    evidence = held(classes, texts=[["w01"], ["w02"]])
    tables = {name: evidence.table(name) for name in ("instances", "class_erasure")}
    assert tables["class_erasure"].num_rows == 0
    found = make_findings(tables, SETTINGS, [f"c{i}" for i in range(classes)])
    assert [(f.key, f.n) for f in found[1:]] == [("class_against", 0)]


@CLASSES
def test_words_that_repeat_tie_in_what_speaks_for_a_class_whatever_their_rounding(classes):
    evidence = held(classes, texts=[["w03", "w07", "w03", "w09", "w07", "w03"]])
    (trace,) = evidence.traces
    noise = 1 + 1e-7 * torch.tensor([0.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    rounded = replace(trace, attention=trace.attention * noise)
    every = torch.arange(classes).unsqueeze(0)
    for one in (trace, rounded):
        change = changes(evidence, one, every)[0]
        weights, relevance, _ = linear(one)
        product = experiment._products(one, weights, relevance)[0]
        for values in (change, product):
            assert torch.equal(values[0], values[2])
            assert torch.equal(values[0], values[5])
            assert torch.equal(values[1], values[4])
            assert (values[0] != values[3]).any()


def test_pairs_are_asked_of_their_candidates_alone():
    model = small_model(classes=4, kind=PairClassifier)
    pairs = random_pairs([2, 5, 7, 3], 4)
    pairs[0] = Pair(pairs[0], pairs[0].query, np.array([True, False, True, False]))
    evidence = evidence_of(model, pairs, SETTINGS)
    table = evidence.table("class_erasure").to_pandas()
    for row, group in table.groupby("row"):
        allowed = pairs[row].allowed
        expected = range(4) if allowed is None else np.flatnonzero(allowed)
        assert sorted(group["class"]) == list(expected)
    assert table.filter(like="count").isna().all(axis=None), "the read-out is not linear"
    assert table.share_for.between(0, 1).all()
    (batch,) = evidence.batches_of([1])
    trace = model.trace(batch)
    asked = list(table[table.row == 1]["class"])
    change = changes(evidence, trace, torch.tensor([asked]))[0]
    for place in range(5):
        left = trace.attention.clone()
        left[0, 0, place] = 0.0
        logits = model.predict(trace, (left / left.sum()).unsqueeze(0))[0, 0].double()
        for which, c in enumerate(asked):
            gain = log_odds(logits, c) - log_odds(trace.logits[0].double(), c)
            assert float(change[place, which]) == pytest.approx(float(gain), abs=2e-5)


def test_a_transformer_is_asked_too():
    texts = [["one", " two", " three", " four"], ["one"], [" a", " b", " c"], ["x", " y"]]
    table = evidence_of(tiny_classifier(), texts, SETTINGS).table("class_erasure").to_pandas()
    assert set(table.row) == {0, 2, 3}
    assert table.sampled.all()
    assert table.weight_for.between(0, 1).all()
    assert table.count_exact.isna().all()


def test_windows_of_a_text_are_pooled_by_class():
    evidence = held(3, texts=random_texts([5, 6, 7]))
    tables = {name: evidence.table(name) for name in ("instances", "class_erasure")}
    windows = tables["instances"].append_column("text", [[0, 0, 1]])
    pooled = by_text({**tables, "instances": windows})
    frame, raw = (t["class_erasure"].to_pandas() for t in (pooled, tables))
    assert frame["row"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["class"].tolist() == [0, 1, 2] * 2
    mean = raw[raw.row < 2].groupby("class").weight_for.mean()
    np.testing.assert_allclose(frame[frame.row == 0].weight_for, mean)
    predicted = pooled["instances"].to_pandas().predicted
    assert (frame.predicted.to_numpy() == predicted.to_numpy()[frame["row"]]).all()


def labelled(tables, names, labels):
    """An audit of these tables, whose texts have these labels."""
    instances = tables["instances"]
    place = instances.column_names.index("label")
    instances = instances.set_column(place, "label", [labels.tolist()])
    settings = RunSettings(
        fingerprint="", data=DataSettings(source="x"), model=ModelSettings(), audit=SETTINGS
    )
    return AuditResult(settings, names, {**tables, "instances": instances}, [], {})


def test_classes_without_a_text_are_not_drawn_but_counted():
    evidence = held(5)
    tables = {name: evidence.table(name) for name in ("instances", "class_erasure")}
    names = [f"c{i}" for i in range(5)]
    labels = np.array([0, 2, 4])[np.arange(len(LENGTHS)) % 3]
    (figure,) = by_class(labelled(tables, names, labels))
    assert rows_of(figure) == {"c0", "c2", "c4"}
    assert figure.notes == ["2 of 5 classes have no text"]
    assert "all texts" in figure.caption
    assert "likeliest" not in figure.caption


def test_of_many_classes_a_row_is_the_texts_in_which_it_is_among_the_likeliest():
    evidence = held(15)
    tables = {name: evidence.table(name) for name in ("instances", "class_erasure")}
    names = [f"c{i}" for i in range(15)]
    (figure,) = by_class(labelled(tables, names, np.arange(len(LENGTHS))))
    assert "one of the 12 likeliest of 15 classes" in figure.caption
    assert figure.notes[0].startswith("5 of 15 classes have no text")
    table = tables["class_erasure"].to_pandas()
    assert rows_of(figure) <= {f"c{i}" for i in set(table["class"])}


def rows_of(figure):
    """The classes that a figure draws."""
    parts = figure.spec.get("datasets") or {"": figure.spec["data"]["values"]}
    return {value["class"] for data in parts.values() for value in data}


@CLASSES
def test_the_figure_draws_the_means_of_the_table(classes):
    evidence = held(classes)
    tables = {name: evidence.table(name) for name in ("instances", "class_erasure")}
    names = ["<b>", *(f"c{i}" for i in range(1, classes))]
    (figure,) = by_class(labelled(tables, names, np.arange(len(LENGTHS)) % classes))
    drawn = {
        (value["class"], value["side"].split()[3], value["map"]): value["tau"]
        for data in figure.spec["datasets"].values()
        for value in data
    } if "datasets" in figure.spec else {
        (value["class"], value["side"].split()[3], value["map"]): value["tau"]
        for value in figure.spec["data"]["values"]
    }  # fmt: skip
    frame = tables["class_erasure"].to_pandas()
    for c, name in enumerate(names):
        for side in SIDES:
            both = frame[frame["class"] == c][[f"tau_{side}", f"tau_{side}_chance"]].dropna()
            for kind, values in zip(("the map", "shuffled"), both, strict=True):
                if len(both):
                    tau = both[values].mean()
                    assert drawn.pop((name, side, kind)) == pytest.approx(tau, abs=1e-4)
    assert not drawn
    assert "8 texts" in figure.n
    assert "2 of one word" in figure.n
