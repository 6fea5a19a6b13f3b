"""ERASER's measures as tables: against reading and renormalising one by one, and as the page shows them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import random_pairs, random_texts, small_model, small_pairs
from making import evidence_of, padded_rows, random_rows
from tiny_transformers import tiny_classifier

from heedmap.counterfactual.weight_erasure import split_along
from heedmap.data.corpus import Split
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods.erasure_predictions import slopes
from heedmap.experiments.methods.rankings import RANKINGS, SHUFFLES, scores_of
from heedmap.experiments.questions import eraser
from heedmap.experiments.questions.decision_flips import fewest
from heedmap.experiments.questions.eraser import counts_of, kept_by
from heedmap.experiments.questions.plausibility import MEASURES, mean_share
from heedmap.experiments.registry import make_findings, registered
from heedmap.importance.deletions import reread_kept
from heedmap.importance.rationale_agreement import (
    average_precision,
    chosen,
    iou_f1,
    number_of,
    token_f1,
)
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.report.eraser_figures import rankings
from heedmap.settings.audit import AuditSettings
from heedmap.settings.run import RunSettings

SETTINGS = AuditSettings(search_instances=12, integrated_gradients_instances=12)
LENGTHS = [1, 2, 3, 5, 8, 8, 12, 1, 4, 30]


def test_bins_hold_at_least_one_token_and_leave_one():
    assert counts_of(2) == [1, 1, 1, 1, 1]
    assert counts_of(3) == [1, 1, 1, 1, 2]
    assert counts_of(30) == [1, 2, 3, 6, 15]
    assert counts_of(100) == [1, 5, 10, 20, 50]
    for size in range(2, 300):
        counts = counts_of(size)
        assert counts == sorted(counts)
        assert 1 <= counts[0] <= counts[-1] < size


def test_a_text_worked_by_hand():
    """Four tokens with the read-out 2, 1, 0, −1 and equal weights; a sigmoid of their mean is p."""
    readout = torch.tensor([[[0.0, 2.0], [0, 1], [0, 0], [0, -1]]])
    weights, mask = torch.full((1, 4), 0.25), torch.ones(1, 4, dtype=torch.bool)
    counts = torch.tensor([[0, 1, 2, 4]])
    without, alone = split_along(
        torch.tensor([[4.0, 3, 2, 1]]), weights, readout, torch.zeros(2), mask, counts
    )
    np.testing.assert_allclose(without[0, :, 1], [0.5, 0, -0.5, 0], atol=1e-12)
    np.testing.assert_allclose(alone[0, :, 1], [0, 2, 1.5, 0.5], atol=1e-12)


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_sums_from_both_ends_are_explicit_renormalisation(classes):
    for seed, rows in [
        (0, padded_rows([1, 2, 3, 8], classes=classes)),
        (1, random_rows(30, 7, classes=classes, seed=1)),
        (2, random_rows(30, 7, classes=classes, seed=2, sparse=True, tied=True)),
        (3, random_rows(30, 7, classes=classes, seed=3, scale=300.0)),
    ]:
        weights, readout, bias, mask = rows
        ranking = torch.randint(0, 4, weights.shape, generator=torch.manual_seed(seed)).double()
        sizes = mask.sum(-1)
        counts = torch.stack([torch.arange(9).clamp(max=int(n)) for n in sizes])
        without, alone = split_along(ranking, weights, readout, bias, mask, counts)
        for i, real in enumerate(mask):
            own = real.nonzero().squeeze(1)
            order = own[np.argsort(-ranking[i, own].numpy(), kind="stable")]
            for q, count in enumerate(counts[i].tolist()):
                for logits, kept in ((without, order[count:]), (alone, order[:count])):
                    mass = weights[i, kept].sum()
                    z = bias.clone()
                    if mass > 0:
                        z += (weights[i, kept] / mass) @ readout[i, kept]
                    torch.testing.assert_close(logits[i, q], z, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("pairs", [False, True])
def test_texts_are_read_again_as_if_they_were_alone(pairs):
    model = small_model(classes=3, kind=PairClassifier if pairs else TextClassifier)
    texts = random_pairs([2, 3, 9]) if pairs else random_texts([2, 3, 9])
    rng = np.random.default_rng(0)
    kept = [rng.random((6, len(text))) < 0.5 for text in texts]
    for masks in kept:
        masks[:, 0] |= ~masks.any(1)
        masks[3] = masks[1]  # equal ones are read once
    for text, masks, found in zip(texts, kept, reread_kept(model, texts, kept), strict=True):
        for mask, logits in zip(masks, found, strict=True):
            tokens = [token for token, stays in zip(text, mask, strict=True) if stays]
            alone = replace(text, tokens=tokens) if pairs else tokens
            expected = model.logits(model.batch([alone], [0]))[0].double()
            torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)


def loss(model, text, mask, of, before):
    tokens = [token for token, stays in zip(text, mask, strict=True) if stays]
    logits = model.logits(model.batch([tokens], [0]))[0].double()
    return before - float(logits.softmax(-1)[of])


@pytest.mark.parametrize("encoder", ["lstm", "average"])
def test_the_table_is_what_reading_one_by_one_gives(encoder):
    texts = random_texts(LENGTHS)
    model = small_model(encoder, classes=3)
    evidence = evidence_of(model, texts, SETTINGS)
    table = evidence.table("eraser").to_pandas()
    drawn = scores_of(evidence, evidence.traces)
    for row, text in enumerate(texts):
        if len(text) < 2:
            assert table.filter(regex="comp|suff").iloc[row].isna().all()
            continue
        logits = model.logits(model.batch([text], [0]))[0].double().softmax(-1)
        before, of = logits.max().item(), int(logits.argmax())
        for name in RANKINGS:
            order = np.argsort(-drawn[row][name], kind="stable")
            losses = {"comprehensiveness": [], "sufficiency": []}
            for percent in (1, 5, 10, 20, 50):
                count = -(-len(text) * percent // 100)
                first = np.isin(np.arange(len(text)), order[:count])
                losses["comprehensiveness"].append(loss(model, text, ~first, of, before))
                losses["sufficiency"].append(loss(model, text, first, of, before))
            for measure, values in losses.items():
                assert table[f"{measure}_{name}"][row] == pytest.approx(np.mean(values), abs=1e-6)
                np.testing.assert_allclose(table[f"bins_{measure}_{name}"][row], values, atol=1e-6)
    assert (
        table.comprehensiveness_random.notna() == table.comprehensiveness_attention.notna()
    ).all()


def test_imposing_the_weights_gives_what_the_closed_form_gives(monkeypatch):
    tables = []
    for is_closed in (eraser.is_closed, lambda trace, how: False):
        monkeypatch.setattr(eraser, "is_closed", is_closed)
        evidence = evidence_of(small_model(classes=3), random_texts(LENGTHS), SETTINGS)
        tables.append(evidence.table("eraser").to_pandas().filter(like="_weights_"))
    assert tables[0].shape[1] == 2 * (len(RANKINGS) + 1)
    np.testing.assert_allclose(*tables, atol=1e-5)


def test_of_words_that_are_states_reading_again_is_erasing_weights():
    """The average encoder's states and scores are of single words, which the others do not change."""
    evidence = evidence_of(small_model("average"), random_texts(LENGTHS), SETTINGS)
    table = evidence.table("eraser").to_pandas()
    for measure in ("comprehensiveness", "sufficiency"):
        for name in (*RANKINGS, "random"):
            again, weights = table[f"{measure}_{name}"], table[f"{measure}_weights_{name}"]
            np.testing.assert_allclose(again, weights, atol=1e-6)


def test_saturated_predictions_lose_nothing_and_stay_finite():
    model = small_model("average")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(40.0)
    table = evidence_of(model, random_texts([2, 3, 9]), SETTINGS).table("eraser").to_pandas()
    values = table.filter(regex="^(comp|suff)").to_numpy()
    assert np.isfinite(values).all()
    assert (np.abs(values) <= 1).all()


def test_rankings_are_those_of_their_name():
    evidence = evidence_of(small_model(classes=3), random_texts([3, 1, 7]), SETTINGS)
    found = scores_of(evidence, evidence.traces)
    for trace in evidence.traces:
        gradient, product = slopes(evidence.model, trace)
        for i, row in enumerate(trace.rows.tolist()):
            real = trace.mask[i]
            np.testing.assert_allclose(found[row]["attention"], trace.heatmap[i][real])
            np.testing.assert_allclose(found[row]["read_out"], gradient[i][real])
            np.testing.assert_allclose(found[row]["read_out_attention"], product[i][real])
            np.testing.assert_array_equal(
                np.argsort(-found[row]["position"]), np.arange(int(real.sum()))
            )
    importance = evidence.table("gradient")["importance"].to_pylist()
    np.testing.assert_array_equal(found[2]["gradient"], importance[2])
    assert "leave_one_out" not in found[1]  # of its only token


def test_masks_are_without_the_first_and_of_them_alone():
    masks = kept_by(np.array([1.0, 5, 5, 0]), [1, 3])
    assert masks.astype(int).tolist() == [[1, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 0]]


def with_marks(model, texts, marks, **changed):
    split = Split([f"k{i}" for i in range(len(texts))], texts, np.zeros(len(texts), int), marks)
    return AuditContext(model, split, SETTINGS.model_copy(update=changed), registered())


def audit_of(tables):
    settings = RunSettings.of(fingerprint="0", data={"source": "x"}, model={}, audit={})
    return AuditResult(settings, ["0", "1"], tables, [], {})


def test_plausibility_is_what_each_ranking_of_each_text_gives():
    rng = np.random.default_rng(0)
    texts = random_texts(LENGTHS)
    marks = [rng.random(n) < 0.4 for n in LENGTHS]
    marks[4][:] = False
    marks[5][:] = True
    evidence = with_marks(small_model(), texts, marks)
    table = evidence.table("plausibility").to_pandas()
    drawn = scores_of(evidence, evidence.traces)
    share = mean_share(marks)
    assert float(share) == pytest.approx(np.mean([m.mean() for m in marks if m.any()]), abs=1e-6)
    for row, mask in enumerate(marks):
        assert table["count"][row] == number_of(share, len(mask))
        values = table.iloc[row][[f"{m}_attention" for m in MEASURES]].to_numpy(float)
        if mask.all() or not mask.any():
            assert np.isnan(values).all()
            continue
        hard = chosen(drawn[row]["attention"], int(table["count"][row]))
        ap = average_precision(mask, drawn[row]["attention"])
        np.testing.assert_allclose(values, [ap, token_f1(mask, hard), iou_f1(mask, hard)])
        assert table.token_f1_best[row] >= table.token_f1_attention[row]
        assert table.iou_f1_best[row] >= table.iou_f1_attention[row]


def test_a_map_of_the_marks_reaches_the_top_and_a_random_one_chance(monkeypatch):
    """1,500 texts: the marks as scores reach what is best, random scores what is said of chance."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(2, 20, 1500)
    marks = [np.isin(np.arange(n), rng.permutation(n)[: rng.integers(1, n)]) for n in lengths]
    texts = random_texts(lengths)
    evidence = with_marks(small_model("average"), texts, marks)
    monkeypatch.setattr(
        "heedmap.experiments.questions.plausibility.scores_of",
        lambda evidence, traces: {
            i: {"attention": mask + 0.0, "gradient": rng.random(len(mask))}
            for i, mask in enumerate(marks)
        },
    )
    table = evidence.table("plausibility").to_pandas()
    np.testing.assert_allclose(table.auprc_attention, 1.0)
    np.testing.assert_allclose(table.token_f1_attention, table.token_f1_best)
    for measure in MEASURES:
        difference = table[f"{measure}_gradient"] - table[f"{measure}_chance"]
        assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference)), measure


def test_findings_say_what_the_tables_say_and_are_never_graded():
    rng = np.random.default_rng(0)
    marks = [rng.random(n) < 0.4 for n in LENGTHS]
    evidence = with_marks(small_model(), random_texts(LENGTHS), marks)
    names = ("instances", "eraser", "plausibility")
    tables = {name: evidence.table(name) for name in names}
    found = {f.key: f for f in make_findings(tables, SETTINGS, ["0", "1"])}
    frame = tables["eraser"].to_pandas()
    for measure in ("comprehensiveness", "sufficiency"):
        one = found[measure]
        assert one.value == pytest.approx(np.nanmean(frame[f"{measure}_attention"]))
        assert one.left_out == {"one token: nothing would be left": 2}
        assert one.relative is None
        random = frame[f"{measure}_random"].mean()
        assert f"at random {random:z.2f}".replace("-", "−") in one.meaning
    plausible = tables["plausibility"].to_pandas()
    for measure in MEASURES:
        one = found[f"plausibility_{measure}"]
        assert one.value == pytest.approx(np.nanmean(plausible[f"{measure}_attention"]))
        assert one.n + sum(one.left_out.values()) == len(LENGTHS)
        assert f"by chance {plausible[f'{measure}_chance'].mean():.2f}" in one.meaning
        assert "plausible is not faithful" in one.meaning
    assert found["plausibility_auprc"].relative.ceiling == 1.0
    assert found["plausibility_iou_f1"].relative is None
    assert all(f.level == "for comparison" for key, f in found.items() if key != "skill")


def test_texts_that_are_not_sampled_are_counted():
    evidence = evidence_of(
        small_model(), random_texts([5] * 9), SETTINGS, integrated_gradients_instances=4
    )
    tables = {name: evidence.table(name) for name in ("instances", "eraser")}
    found = {f.key: f for f in make_findings(tables, SETTINGS, ["0", "1"])}
    assert found["sufficiency"].n == 4
    assert found["sufficiency"].left_out == {"not sampled": 5}
    assert len(tables["eraser"]["bins_sufficiency_random"].drop_null()) == 4
    assert SHUFFLES == 5


def test_pairs_and_a_transformer_are_read_again_too():
    split = small_pairs(30).splits["test"]
    held = AuditContext(small_model(classes=4, kind=PairClassifier), split, SETTINGS, registered())
    assert np.isfinite(held.table("eraser").to_pandas().comprehensiveness_weights_read_out).any()
    people = held.table("plausibility").to_pandas()
    assert people.auprc_attention.notna().sum() > people.auprc_read_out.notna().sum() - 1

    texts = [["one", " two", " three", " four"], ["one"], [" a", " b", " c"], ["x", " y"]]
    model = tiny_classifier()
    table = evidence_of(model, texts, SETTINGS).table("eraser").to_pandas()
    assert table.comprehensiveness_attention.notna().tolist() == [True, False, True, True]
    before = model.logits(model.batch([texts[3]], [0]))[0].double().softmax(-1)
    for measure, word in (("comprehensiveness", " y"), ("sufficiency", "x")):
        after = model.logits(model.batch([[word]], [0]))[0].double().softmax(-1)
        expected = (before - after)[before.argmax()].item()
        assert table[f"{measure}_position"][3] == pytest.approx(expected, abs=1e-6)


def test_the_fewest_of_any_ranking_stand_in_where_no_proof_is_known():
    counts = [np.array([3.0, 0, 0, np.nan]), np.array([2.0, 4, 0, np.nan])]
    assert np.array_equal(fewest(counts), [2, 4, 0, np.nan], equal_nan=True)


def cells(figure):
    """The figure's numbers by column and row."""
    spec = figure.spec
    data = next(part["data"] for part in [spec, *spec["layer"]] if "data" in part)
    values = data["values"] if "values" in data else spec["datasets"][data["name"]]
    return {(cell["measure"], cell["ranking"]): cell for cell in values}


@pytest.mark.parametrize("people", [True, False])
def test_the_page_shows_plausible_and_faithful_side_by_side(people):
    rng = np.random.default_rng(0)
    marks = [rng.random(n) < 0.4 for n in LENGTHS]
    evidence = with_marks(small_model(), random_texts(LENGTHS), marks if people else None)
    names = ("instances", "eraser", "decision_flips", *(["plausibility"] if people else []))
    tables = {name: evidence.table(name) for name in names}
    (figure,) = rankings(audit_of(tables))
    shown = cells(figure)
    columns = {measure for measure, _ in shown}
    assert columns == {"compr.", "suff.", "flips"} | ({*MEASURES.values()} if people else set())
    frame = tables["eraser"].to_pandas()
    mean = frame.sufficiency_read_out.mean()
    assert shown["suff.", "read-out"]["value"] == f"{mean:.2f}".replace("-", "−")
    random = frame.comprehensiveness_random.mean()
    assert shown["compr.", "at random"]["value"] == f"{random:.2f}".replace("-", "−")
    assert shown["compr.", "at best"]["value"] == "–"
    assert shown["flips", "at best"]["value"] == "1.00"
    assert shown["flips", "gradient"]["value"] == "–"
    best = min(frame[f"sufficiency_{name}"].mean() for name in RANKINGS)
    for name, words in RANKINGS.items():
        shade = shown["suff.", words]["shade"]
        assert 0 <= shade <= 1
        assert (shade == 1) == (frame[f"sufficiency_{name}"].mean() == best)
    if people:
        used = tables["plausibility"].to_pandas().dropna(subset=["auprc_attention"])
        expected = used.dropna(subset=[f"auprc_{name}" for name in RANKINGS]).auprc_chance.mean()
        assert shown["AUPRC", "at random"]["value"] == f"{expected:.2f}"
        assert "AUPRC" in figure.n
    assert ("people" in figure.caption) == people


def test_without_the_tables_there_is_no_figure():
    evidence = evidence_of(small_model(), random_texts([3, 4]), SETTINGS)
    assert rankings(audit_of({"instances": evidence.table("instances")})) == []
    alone = evidence_of(small_model(), random_texts([1, 1]), SETTINGS)
    tables = {name: alone.table(name) for name in ("instances", "eraser", "decision_flips")}
    assert rankings(audit_of(tables)) == []
