from itertools import permutations as every_order

import numpy as np
import pytest
import torch
from conftest import small_corpus, small_model
from making import SETTINGS, evidence_of
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score

from heedmap.counterfactual.permute import permuted_logits
from heedmap.data.corpus import Split
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.questions.agreement import PAIRS
from heedmap.experiments.questions.rationale import _auc, _hit
from heedmap.experiments.registry import applicable, make_findings, registered
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import LN2, change_in_prediction, jensen_shannon
from heedmap.runs.audit import audit
from heedmap.runs.train import train


@pytest.fixture(scope="module")
def evidence(small_run):
    return AuditContext(small_run.model, small_run.corpus.splits["test"], SETTINGS, registered())


def test_every_table_has_one_row_an_instance_in_the_order_of_the_split(evidence):
    for name in applicable(evidence.model, evidence.split):
        if name != "rationale" and registered()[name].per_text:
            assert evidence.table(name)["row"].to_pylist() == list(range(len(evidence.split)))
    assert evidence.table("instances")["key"].to_pylist() == evidence.split.keys
    assert evidence.table("instances")["tokens"].to_pylist() == evidence.split.tokens


def test_every_list_has_one_number_a_token_and_weights_sum_to_one(evidence):
    lengths = [len(tokens) for tokens in evidence.split.tokens]
    for table, column in (
        ("instances", "attention"), ("gradient", "importance"),
        ("leave_one_out", "importance"), ("adversary", "attention"),
    ):  # fmt: skip
        lists = evidence.table(table)[column].to_pylist()
        assert [len(values) for values in lists] == lengths
        if column == "attention":
            assert np.allclose([sum(values) for values in lists], 1, atol=1e-6)


def test_how_sharp_a_map_is_follows_from_its_weights(evidence):
    """Entropy in nats, and the largest weight."""
    for row in evidence.table("instances").to_pylist():
        weights = np.array(row["attention"])
        entropy = -sum(w * np.log(w) for w in weights if w > 0)
        assert row["entropy"] == pytest.approx(entropy, abs=1e-5)
        assert row["max_attention"] == weights.max()
        assert row["predicted"] == np.argmax(row["probabilities"])
        assert row["n_tokens"] == len(row["tokens"]) == len(weights)


def test_agreement_is_scipys_tau_of_the_lists_in_the_tables(evidence):
    agreement = evidence.table("agreement").to_pandas()
    lists = {"attention": evidence.table("instances")["attention"].to_pylist()}
    for name in ("gradient", "leave_one_out", "integrated_gradients"):
        lists[name] = evidence.table(name)["importance"].to_pylist()
    for a, b in PAIRS:
        for i, found in enumerate(agreement[f"tau_{a}_{b}"]):
            if lists[a][i] is None or lists[b][i] is None or len(lists[a][i]) < 2:
                assert np.isnan(found)
            else:
                expected = kendalltau(np.array(lists[a][i], np.float64), lists[b][i])
                assert found == pytest.approx(expected.statistic, abs=1e-12, nan_ok=True)
                assert agreement[f"p_{a}_{b}"][i] == pytest.approx(expected.pvalue, rel=1e-7)


def test_leave_one_out_is_the_change_of_the_probability_without_the_token(evidence):
    model, tokens = evidence.model, evidence.split.tokens[5]
    p = model.trace(model.batch([tokens], [0])).logits.double().softmax(-1)[0, 1].item()
    found = evidence.table("leave_one_out")["importance"][5].as_py()
    for t, value in enumerate(found):
        without = [*tokens[:t], *tokens[t + 1 :]]
        q = model.trace(model.batch([without], [0])).logits.double().softmax(-1)[0, 1].item()
        assert value == pytest.approx(abs(p - q), abs=1e-6)


def test_integrated_gradients_are_there_for_the_sampled_texts_alone(evidence):
    lists = evidence.table("integrated_gradients")["importance"].to_pylist()
    assert sum(values is not None for values in lists) == 6


@pytest.mark.parametrize("classes", [2, 3])
def test_the_adversary_is_feasible_and_as_different_as_the_table_says(classes):
    model = small_model(classes=classes)
    evidence = evidence_of(model, [["w01", "w02", "w03", "w30", "w17"], ["w05"], ["w09", "w10"]])
    found = evidence.table("adversary").to_pandas()
    for trace in evidence.traces:
        for row in trace.rows.tolist():
            n = len(evidence.split.tokens[row])
            weights = torch.zeros(1, 1, 1, trace.mask.shape[1])
            weights[0, 0, 0, :n] = torch.tensor(found["attention"][row])
            alone = evidence.model.batch([evidence.split.tokens[row]], [0])
            own = evidence.model.trace(alone)
            p = own.logits.double().softmax(-1)[0]
            q = evidence.model.predict(own, weights[..., :n]).double().softmax(-1)[0, 0]
            assert 0.5 * (p - q).abs().sum() <= 0.01 + 1e-5
            jsd = jensen_shannon(weights[0, 0, 0, :n].double(), own.heatmap[0].double())
            assert jsd.item() == pytest.approx(found["jsd"][row], abs=1e-5)
    assert (found["jsd"] <= found["jsd_upper"] + 1e-9).all()
    assert found["jsd"][1] == 0
    assert (found["jsd_upper"] <= LN2 + 1e-9).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_with_the_same_prediction_have_as_many_dimensions_as_tokens_less_classes(classes):
    lengths = [1, 2, 3, 4, 7, 12]
    texts = [[f"w{(7 * i + n) % 40:02d}" for i in range(n)] for n in lengths]
    found = evidence_of(small_model(classes=classes), texts).table("adversary")["dimension"]
    assert found.to_pylist() == [max(0, n - classes) for n in lengths]


def test_the_exact_adversary_is_never_beaten_by_the_search_and_grows_with_epsilon(evidence):
    found = evidence.table("adversary").to_pandas()
    assert (found["jsd"] >= found["search_jsd"] - 1e-6).all()
    curve = np.array(found["curve_lower"].to_list())
    assert (np.diff(curve, axis=1) >= -1e-9).all()
    at = SETTINGS.curve.index(SETTINGS.epsilon)
    assert np.allclose(curve[:, at], found["jsd"])


def test_with_more_classes_the_bounds_enclose_and_grow_and_zero_epsilon_leaves_freedom():
    model = small_model("average", classes=3)
    texts = [[f"w{(i * k) % 40:02d}" for k in range(1, 13)] for i in (1, 3, 7, 9)]
    found = evidence_of(model, texts).table("adversary").to_pandas()
    lower, upper = (np.array(found[f"curve_{end}"].to_list()) for end in ("lower", "upper"))
    assert (lower <= upper + 1e-9).all()
    assert (np.diff(lower, axis=1) >= 0).all()
    assert (np.diff(upper, axis=1) >= 0).all()
    assert SETTINGS.curve[0] == 0
    assert (lower[:, 0] > 0.01).all(), (
        "12 tokens and 3 classes: other weights with the same logits exist"
    )
    at = SETTINGS.curve.index(SETTINGS.epsilon)
    assert np.array_equal(lower[:, at], found["jsd"])


def test_shuffling_equal_weights_changes_nothing():
    model = small_model("average")
    model.score.vector.weight.zero_()
    found = (
        evidence_of(model, [["w01", "w02", "w03"], ["w04", "w05"]]).table("permutation").to_pandas()
    )
    assert np.allclose(found["median_tvd"], 0, atol=1e-6)
    assert (found["flipped"] == 0).all()


def test_the_median_over_an_even_number_of_shuffles_is_the_middle():
    model = small_model()
    texts = [["w01", "w02", "w03", "w07"]]
    found = evidence_of(model, texts, permutations=2)
    one = evidence_of(model, texts, permutations=2)
    assert found.table("permutation").equals(one.table("permutation"))
    (trace,) = found.traces
    logits = permuted_logits(*linear_of(trace), 2, found.generator("permutation"))[0]
    p = trace.logits[0].double().softmax(-1)
    changes = [0.5 * (p - q.softmax(-1)).abs().sum().item() for q in logits]
    median = found.table("permutation")["median_tvd"][0].as_py()
    assert changes[0] != changes[1]
    assert median == pytest.approx(sum(changes) / 2, abs=1e-9)


@pytest.mark.parametrize("tokens", [1, 2, 3, 4])
def test_of_a_short_text_every_order_counts_once_whatever_the_seed(tokens):
    model = small_model()
    model.score.vector.weight.mul_(30)
    model.projection.weight.mul_(10)
    texts = [[f"w{7 * i:02d}" for i in range(tokens)], ["w05"] * 9]
    one, two = (
        evidence_of(model, texts, permutations=100, seed=seed).table("permutation").to_pandas()
        for seed in (0, 1)
    )
    names = ["median_tvd", "flipped"]
    assert one[names].iloc[0].equals(two[names].iloc[0])
    trace = next(iter(evidence_of(model, texts[:1]).traces))
    weights = trace.attention[0, 0, :tokens]
    before = trace.logits[0].double().softmax(-1)
    changes, flips = [], []
    for order in every_order(range(tokens)):
        p = model.predict(trace, weights[list(order)].expand(1, 1, 1, -1)).double()
        changes.append(0.5 * (p[0, 0].softmax(-1) - before).abs().sum().item())
        flips.append(p.argmax() != before.argmax())
    assert one["median_tvd"][0] == pytest.approx(np.median(changes), abs=1e-6)
    assert one["flipped"][0] == pytest.approx(np.mean(flips), abs=1e-12)
    assert tokens == 1 or one["median_tvd"][0] > 1e-3


def linear_of(trace):
    weights, relevance, bias = linear(trace)
    return weights, trace.mask, relevance, bias


def test_rationale_auc_is_sklearns():
    corpus = small_corpus()
    test = corpus.splits["test"]
    gold = [np.array([i % 3 == 0 for i in range(len(t))]) for t in test.tokens]
    corpus.splits["test"] = Split(test.keys, test.tokens, test.labels, gold)
    run = train(corpus, encoder="average", epochs=1, embedding_size=8, hidden_size=8, min_df=1)
    result = audit(run, permutations=5)
    frame, instances = result.to_dataframe("rationale"), result.to_dataframe("instances")
    for i, mask in enumerate(gold):
        if mask.all() or not mask.any():
            assert np.isnan(frame["auc_attention"][i])
        else:
            expected = roc_auc_score(mask, instances["attention"][i])
            assert frame["auc_attention"][i] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gold", "scores", "auc", "hit"),
    [
        ([True, False, False], [0.9, 0.1, 0.2], 1.0, 1.0),
        ([True, False, False], [0.1, 0.9, 0.2], 0.0, 0.0),
        ([True, False, False], [0.5, 0.5, 0.2], 0.75, 0.5),  # of two that are first, one is right
        ([False, True, True, False], [0.4, 0.4, 0.4, 0.1], 0.75, 2 / 3),
        ([True, True], [0.5, 0.2], np.nan, np.nan),
        ([False, False], [0.5, 0.2], np.nan, np.nan),
        ([True, False], [np.nan, np.nan], np.nan, np.nan),
        ([True, False], None, np.nan, np.nan),
    ],
)
def test_ties_count_half_and_at_the_top_in_their_share(gold, scores, auc, hit):
    gold, scores = np.array(gold), None if scores is None else np.array(scores)
    assert (_auc(gold, scores), _hit(gold, scores)) == pytest.approx((auc, hit), nan_ok=True)


def test_texts_of_one_and_two_tokens_are_defined_or_counted(evidence):
    agreement = evidence.table("agreement").to_pandas()
    lengths = evidence.table("instances")["n_tokens"].to_numpy()
    tau = agreement["tau_attention_leave_one_out"]
    assert tau[lengths == 1].isna().all()
    assert (tau[lengths == 2].abs() == 1).all()


def test_the_order_of_the_texts_changes_no_importance(small_run):
    test = small_run.corpus.splits["test"]
    back = test.take(np.arange(len(test))[::-1])
    one = AuditContext(small_run.model, test, SETTINGS, registered()).table("leave_one_out")
    two = AuditContext(small_run.model, back, SETTINGS, registered()).table("leave_one_out")
    for a, b in zip(
        one["importance"].to_pylist(), two["importance"].to_pylist()[::-1], strict=True
    ):
        assert np.allclose(a, b, atol=1e-6, equal_nan=True)


def blind(classes=2):
    """A model that sees one thing in every word, but for a mark that only the attention sees."""
    model = small_model("average", classes=classes)
    generator = torch.Generator().manual_seed(2)
    states = torch.randn(model.embedding.weight.shape, generator=generator)
    model.embedding.weight[:] = states[:1]
    model.embedding.weight[:, 0] = states[:, 0]
    model.projection.weight[:, 0] = 0
    model.encoder.projection.weight[0] = 0
    model.encoder.projection.weight[1:, 0] = 0
    model.encoder.projection.weight[0, 0] = 1
    model.score.vector.weight.mul_(20)
    return model


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("how", ["remove", "mask"])
def test_tokens_whose_absence_only_rounding_notices_tie(classes, how):
    texts = [[f"w{i:02d}" for i in range(n)] for n in range(1, 30)]
    evidence = evidence_of(blind(classes), texts, leave_one_out=how)
    lists = evidence.table("leave_one_out")["importance"].to_pylist()
    assert np.isnan(lists[0]).all()
    assert all(value == 0 for values in lists[1:] for value in values)
    signed = evidence.table("leave_one_out")["signed"].to_pylist()
    assert all(value == 0 for values in signed[1:] for value in values)
    weights = evidence.table("instances")["attention"].to_pylist()
    assert all(np.ptp(values) > 1e-3 for values in weights[1:])
    names = ("instances", "agreement", "integrated_gradients")
    tables = {name: evidence.table(name) for name in names}
    findings = {f.key: f for f in make_findings(tables, SETTINGS, ["a", "b"])}
    found = findings["agreement_leave_one_out"]
    assert found.n == 0
    assert found.left_out == {
        "undefined: one token": 1,
        "undefined: a measure is the same for all tokens": 28,
    }


def test_a_change_that_is_more_than_rounding_keeps_its_last_digit():
    evidence = evidence_of(small_model("average"), [["w01", "w02", "w03", "w30", "w17"]])
    (found,) = evidence.table("leave_one_out")["importance"].to_pylist()
    (trace,) = evidence.traces
    batch = evidence.batches[0]
    without = logits_without_each(evidence.model, batch, evidence.texts)
    expected = change_in_prediction(trace.logits.unsqueeze(1).expand_as(without), without)[0]
    assert found == expected.tolist()
    assert min(found) > 0


def test_integrated_gradients_take_more_steps_for_texts_of_which_they_miss_a_part():
    model = small_model("lstm")
    model.embedding.weight.mul_(25)
    model.projection.weight.mul_(3)
    texts = [[f"w{(5 * i + 3 * j) % 40:02d}" for j in range(2 + i)] for i in range(12)]
    changed = {"integrated_gradients_steps": 1, "integrated_gradients_instances": 11}
    found = evidence_of(model, texts, **changed).table("integrated_gradients").to_pylist()
    steps_taken = []
    for row, text in zip(found, texts, strict=True):
        if row["importance"] is None:
            assert row["completeness_error"] is row["steps"] is None
            continue
        for steps in (1, 2, 4, 8):
            batch = model.batch([text], [0])
            values, error = integrated_gradients(model, batch, model.trace(batch), steps)
            if error <= 0.1:
                break
        assert row["steps"] == steps
        assert row["importance"] == pytest.approx(values[0].tolist(), abs=1e-4)
        assert row["completeness_error"] == pytest.approx(error.item(), abs=1e-4)
        steps_taken.append(steps)
    assert len(steps_taken) == 11
    assert {1, 2, 4, 8} == set(steps_taken)
