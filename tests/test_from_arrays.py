"""Runs of arrays: the exact questions are those of the model itself, and the rest is said not to be asked."""

import numpy as np
import pytest
import torch
from tiny_audits import CLASSES, QUICK, WORDS, own_model
from traced_texts import EXACT, traced
from wording import refused

import heedmap as hm
from heedmap.data.texts import Stored, beginning
from heedmap.errors import KindError
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import applicable, registered
from heedmap.report.card import facts
from heedmap.report.page import page
from heedmap.runs.audit import audit_as

SIZES = (4, 6, 1, 9, 5, 7, 2, 2, 3, 8, 5, 12, 6, 4, 7, 3, 8, 5)
NO_READING = "it cannot read changed input again"


def texts_of(seed=0, sizes=SIZES):
    rng = np.random.default_rng(seed)
    return [[WORDS[i] for i in rng.integers(0, len(WORDS), n)] for n in sizes]


def sharp_model():
    """An untrained model whose weights differ and whose answers are of both classes."""
    model = own_model("own")
    with torch.no_grad():
        for parameter in model.score.parameters():
            parameter.mul_(4)
        model.decoder.weight.mul_(12)
        model.decoder.bias.sub_(
            model.logits(model.batch(texts_of(), range(len(SIZES))))[:, 1].median()
        )
    return model


def tables_of(model, split):
    context = AuditContext(model, split, QUICK, registered())
    return {name: context.table(name) for name in applicable(model, split)}


@pytest.fixture(scope="module")
def pair():
    """The tables of a model, and those of its arrays."""
    model, texts = sharp_model(), texts_of()
    attention, readouts, states = traced(model, texts)
    run = hm.from_arrays(
        attention, readouts=readouts, bias=[0, model.decoder.bias.item()], items=texts
    )
    split = run.corpus.splits["test"]
    own = tables_of(model, hm.Split(split.keys, split.tokens, split.labels))
    head = {"weight": model.decoder.weight, "bias": model.decoder.bias}
    of_states = hm.from_arrays(attention, values=states, items=texts, **head)
    return (
        own,
        tables_of(run.model, split),
        tables_of(of_states.model, of_states.corpus.splits["test"]),
    )


def numbers(table, name):
    column = table[name].combine_chunks()
    while hasattr(column, "flatten") and column.type.num_fields:
        column = column.flatten()
    return column


@pytest.mark.parametrize("name", EXACT)
def test_exact_questions_of_arrays_have_the_numbers_of_the_model(pair, name):
    own, of_readouts, of_states = pair
    columns = [c for c in own[name].column_names if "leave_one_out" not in c and c != "key"]
    assert len(set(own["instances"]["predicted"].to_pylist())) == 2
    for column in columns:
        expected = numbers(own[name], column).to_pylist()
        for tables in (of_readouts, of_states):
            got = numbers(tables[name], column).to_pylist()
            if expected and any(isinstance(x, float) for x in expected):
                expected = [np.nan if x is None else x for x in expected]
                got = [np.nan if x is None else x for x in got]
                np.testing.assert_allclose(got, expected, atol=2e-5, err_msg=column)
            else:
                assert got == expected, column


def softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_opposing_mass_without_reading_is_that_of_erased_weights(pair):
    own, of_readouts, _ = pair
    for row, against in enumerate(of_readouts["opposing_mass"]["against"].to_pylist()):
        weights = np.array(own["instances"]["attention"][row].as_py())
        said = np.array(own["relevance"]["relevance"][row].as_py())
        bias = np.array(own["relevance"]["bias"][row].as_py())
        if len(weights) == 1:
            assert np.isnan(against)
            continue

        answer = softmax(weights / weights.sum() @ said + bias).argmax()
        erased = weights * (1 - np.eye(len(weights)))
        without = softmax(erased / erased.sum(1, keepdims=True) @ said + bias)[:, answer]
        is_against = without > softmax(weights / weights.sum() @ said + bias)[answer] + 1e-6
        assert against == pytest.approx(weights[is_against].sum() / weights.sum(), abs=1e-5)


def test_every_function_of_the_model_of_arrays():
    run = words_run(predict=True)
    model, texts = run.model, run.corpus.splits["test"].texts
    batch = model.batch(texts[:3], [4, 5, 6])
    trace = model.trace(batch)
    assert batch.rows.tolist() == [4, 5, 6]
    assert torch.equal(model.logits(batch), trace.logits)
    assert torch.allclose(model.predict(trace, trace.attention[None])[0], trace.logits)
    assert torch.equal(model.to_heatmap(trace, trace.attention[None])[0], trace.heatmap)
    assert torch.equal(model.on_tokens(trace.heatmap, batch), trace.heatmap)
    assert torch.equal(model.token_positions(batch), batch.mask)
    assert next(iter(model.parameters())).dtype == model.precision == torch.float64
    for refusing in (
        lambda: model.embed(batch),
        lambda: model.logits_from(trace.heatmap[..., None], batch),
    ):
        with pytest.raises(NotImplementedError):
            refusing()
    with refused("mask"):
        model.mask_token(texts[0], 0)
    changed = model.batch([["w1", "w2"], texts[0]], [0, 1])
    again = model.logits(changed).softmax(-1)
    assert torch.allclose(again[1], trace.logits[0].softmax(-1), atol=1e-6)
    with refused("changed"):
        model.trace(changed)


def test_the_first_items_of_an_instance_keep_their_arrays():
    text = Stored(["a", "b", "c"], 7)
    first = beginning(text, 2)
    assert (first.number, [*first], text[1:], text[1]) == (7, ["a", "b"], ["b", "c"], "b")


SCORES = np.random.default_rng(1).normal(size=12) * 2
SAYS = np.random.default_rng(2).normal(size=12) * 6


def answers(texts):
    """A model of attention over words, each with a score and what it says: in plain NumPy."""
    places = [np.array([int(word[1:]) for word in text]) for text in texts]
    attention = [np.exp(SCORES[p]) / np.exp(SCORES[p]).sum() for p in places]
    z = np.array([a @ SAYS[p] for a, p in zip(attention, places, strict=True)])
    return 1 / (1 + np.exp(-z)), attention


def words_run(predict=False, count=24, **options):
    rng = np.random.default_rng(3)
    texts = [[f"w{i}" for i in rng.integers(0, 12, n)] for n in rng.integers(2, 9, count)]
    probabilities, attention = answers(texts)
    readouts = [SAYS[[int(word[1:]) for word in text]] for text in texts]
    options = {"labels": (probabilities > 0.5).astype(int), **options}
    if predict:
        options["predict"] = answers if predict is True else predict
    return hm.from_arrays(
        attention, readouts=readouts, items=texts, predictions=probabilities, **options
    )


def test_a_function_that_reads_again_makes_leave_one_out_and_the_bottom_line_possible():
    run = words_run(predict=True)
    audit = audit_as(run, QUICK)
    texts = run.corpus.splits["test"].tokens
    for row in (0, 1, 2):
        whole = answers([texts[row]])[0][0]
        without = [
            answers([texts[row][:t] + texts[row][t + 1 :]])[0][0] for t in range(len(texts[row]))
        ]
        got = audit.tables["leave_one_out"]["importance"][row].as_py()
        np.testing.assert_allclose(got, abs(np.array(without) - whole), atol=1e-6)
    assert {"highlights", "alternatives"} <= {*audit}
    assert audit.about["not_asked"]["gradient"] == ["gradients"]
    assert "leave_one_out" not in audit.about["not_asked"]
    assert "read again" not in " ".join(audit.bottom_line.not_tested)
    assert audit.bottom_line.measured
    assert run.facts["prediction_difference"] < 1e-6


def test_what_was_not_asked_stands_on_card_and_page_and_in_the_bottom_line():
    audit = audit_as(words_run(), QUICK)
    assert NO_READING in dict(facts(audit))["not asked"]
    assert NO_READING in page(audit)
    line = audit.bottom_line
    assert line.answer == "cannot tell"
    assert "cannot read the input again" in line.because
    assert any("read again without some of it" in part for part in line.not_tested)
    assert (
        "leave-one-out" not in next(f for f in audit.findings if f.key == "decision_flips").meaning
    )
    assert "leave_one_out" not in audit
    assert "arrays" in line.rates


@pytest.mark.parametrize(
    ("attention", "readouts"),
    [
        ([[1.0], [], [0.5, 0.5], [0.3, 0.7]], [[[2.0]], [], [[1.0], [1.0]], [[500.0], [-500.0]]]),
        ([[1.0]], [[[0.0, 1.0, 2.0]]]),
        ([[0.5, 0.5], [0.25, 0.75]], [[[1.0, 0.0], [0.0, 1.0]]] * 2),
    ],
)
def test_instances_of_no_item_of_one_of_two_ties_and_sure_answers(attention, readouts):
    run = hm.from_arrays(attention, readouts=readouts)
    audit = audit_as(run, QUICK)
    kept = [weights for weights in attention if weights]
    assert audit["instances"]["n_tokens"].tolist() == [len(weights) for weights in kept]
    assert run.corpus.left_out == ({"no items": 1} if len(kept) < len(attention) else {})
    assert page(audit)


def test_rows_of_weights_are_searched_instead():
    rng = np.random.default_rng(0)
    attention = [rng.dirichlet(np.ones(n), size=2) for n in (1, 2, 5, 4)]
    values = [rng.normal(size=(2, a.shape[1], 3)) for a in attention]
    weight = rng.normal(size=(3, 6))
    run = hm.from_arrays(attention, values=values, weight=weight)
    audit = audit_as(run, QUICK)
    context = np.concatenate([attention[2][k] @ values[2][k] for k in range(2)])
    shares = np.exp(weight @ context) / np.exp(weight @ context).sum()
    np.testing.assert_allclose(audit["instances"]["probabilities"][2], shares, atol=1e-9)
    assert "relevance" not in audit


def test_weights_of_another_sum_are_scaled_and_the_prediction_stays():
    readouts = [[[1.0, -1.0], [0.5, 3.0]]]
    once, twice = (hm.from_arrays([[a, b]], readouts=readouts) for a, b in ((0.5, 0.5), (1.0, 1.0)))
    batches = [run.model.batch(run.corpus.splits["test"].texts, [0]) for run in (once, twice)]
    logits = [run.model.logits(batch) for run, batch in zip((once, twice), batches, strict=True)]
    assert torch.allclose(2 * logits[0], logits[1])
    assert "scaled" in twice.corpus.notes[-1]
    assert twice.model.attention[0].sum() == 1


def padded(*, left=False):
    """Arrays of 12 instances of 2 to 8 items, by instance, and filled up to 8 with NaN and weights of 0."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 9, 12)
    mask = np.arange(8) < lengths[:, None]
    mask = mask[:, ::-1] if left else mask
    attention, values = np.zeros((12, 8)), np.full((12, 8, 3), np.nan)
    attention[mask] = np.concatenate([rng.dirichlet(np.ones(n)) for n in lengths])
    values[mask] = rng.normal(size=(lengths.sum(), 3))
    names = [[f"{i}.{t}" for t in range(8)] for i in range(12)]
    weight = rng.normal(size=(1, 3))
    own = {
        "attention": [a[m] for a, m in zip(attention, mask, strict=True)],
        "values": [h[m] for h, m in zip(values, mask, strict=True)],
        "items": [
            [n for n, is_item in zip(*both, strict=True) if is_item]
            for both in zip(names, mask, strict=True)
        ],
        "weight": weight,
    }
    full = {"attention": attention, "values": values, "items": names, "weight": weight}
    return own, full, lengths, mask


@pytest.mark.parametrize(
    ("told", "left"),
    [
        (lambda full, lengths, mask: {**full, "lengths": lengths}, False),
        (lambda full, lengths, mask: {**full, "lengths": torch.tensor(lengths).float()}, False),
        (lambda full, lengths, mask: {**full, "mask": mask}, True),
        (lambda full, lengths, mask: {**full, "mask": mask.astype(int).tolist()}, False),
        (
            lambda full, lengths, mask: {
                **full,
                "attention": np.ma.array(full["attention"] + 0.25 * ~mask, mask=~mask),
            },
            True,
        ),
        (
            lambda full, lengths, mask: {
                **full,
                "values": [
                    np.ma.array(h, mask=np.tile(~m[:, None], 3))
                    for h, m in zip(full["values"], mask, strict=True)
                ],
            },
            True,
        ),
    ],
)
def test_padded_arrays_are_the_run_of_their_items_alone(told, left):
    own, full, lengths, mask = padded(left=left)
    expected, run = hm.from_arrays(**own), hm.from_arrays(**told(full, lengths, mask))
    assert run.settings.model == expected.settings.model
    assert run.corpus.fingerprint() == expected.corpus.fingerprint()
    assert run.corpus.notes[0] == f"{96 - lengths.sum()} of 96 items are padding: left out"
    weights, said = own["attention"][3], own["values"][3] @ own["weight"].T
    rng = np.random.default_rng(1)
    shuffled = [1 / (1 + np.exp(-rng.permutation(weights) @ said[:, 0])) for _ in range(2000)]
    z = weights @ said[:, 0]
    audit = hm.audit(run, permutations=2000, progress=False)
    tvd = audit["permutation"]["median_tvd"][3]
    assert tvd == pytest.approx(np.median(abs(np.array(shuffled) - 1 / (1 + np.exp(-z)))), abs=0.02)


def test_padding_that_nothing_tells_is_refused_and_few_items_of_weight_0_are_noted():
    for left in (False, True):
        full = padded(left=left)[1]
        full["values"] = np.nan_to_num(full["values"])
        with refused("attention", "11 of 12 instances", "padding", "lengths", "mask"):
            hm.from_arrays(**full)
        few = {name: part[1:3] if name != "weight" else part for name, part in full.items()}
        few = {n: [*p, *padded()[0][n]] if n != "weight" else p for n, p in few.items()}
        (note,) = [n for n in hm.from_arrays(**few).corpus.notes if "items of 0" in n]
        assert note.startswith("2 of 14 instances begin or end with items of 0, which count")
    told = hm.from_arrays(**full, lengths=[8] * 12)  # sparse weights: all are items
    assert [len(text) for text in told.corpus.splits["test"].tokens] == [8] * 12


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (lambda lengths, mask: {"lengths": lengths, "mask": mask}, ["lengths or mask", "both"]),
        (lambda lengths, mask: {"lengths": lengths[1:]}, ["lengths", "12 instances"]),
        (lambda lengths, mask: {"lengths": lengths + 7}, ["lengths[0]", "up to 8 items"]),
        (lambda lengths, mask: {"lengths": []}, ["lengths", "12 instances"]),
        (lambda lengths, mask: {"lengths": lengths - 1}, ["attention[0]", "weight 0 on padding"]),
        (
            lambda lengths, mask: {"mask": ~mask},
            ["attention[0]", "weight 0 on padding", "mask is 1"],
        ),
        (lambda lengths, mask: {"mask": mask[:, 1:]}, ["mask[0]", "8 items", "(7,)"]),
    ],
)
def test_lengths_and_masks_that_do_not_fit_are_refused_in_one_line(options, names):
    _, full, lengths, mask = padded()
    with refused(*names):
        hm.from_arrays(**full, **options(lengths, mask))


def test_what_a_masked_array_hides_is_never_read_as_a_number():
    own, _, _, _ = padded()
    hidden = np.ma.array(own["weight"], mask=[[True, False, False]])
    with refused("weight", "masked array", "hides"):
        hm.from_arrays(**{**own, "weight": hidden})
    with refused("labels[0]", "None"):
        hm.from_arrays(**own, labels=np.ma.array([0] * 12, mask=[True] + [False] * 11))
    own["values"][2] = np.ma.array(own["values"][2], mask=np.eye(*own["values"][2].shape))
    with refused("values[2]", "masked array", "hides"):
        hm.from_arrays(**own)


def test_read_outs_that_are_probabilities_are_refused_unless_predictions_show_logits():
    rng = np.random.default_rng(0)
    attention, shares = list(rng.dirichlet(np.ones(4), 9)), list(rng.random((9, 4, 1)))
    with refused("readouts", "logits", "0 to 1", "predictions"):
        hm.from_arrays(attention, readouts=shares)
    z = np.array([a @ s[:, 0] for a, s in zip(attention, shares, strict=True)])
    run = hm.from_arrays(attention, readouts=shares, predictions=1 / (1 + np.exp(-z)))
    assert run.facts["prediction_difference"] < 1e-9
    with refused("predictions[", "differs"):
        hm.from_arrays(attention, readouts=shares, predictions=z)
    number = hm.from_arrays(attention, readouts=shares, unit="mm")
    np.testing.assert_allclose(number.model.logits(whole(number))[:, 0], z)


def whole(run):
    """All instances of a run as a batch."""
    texts = run.corpus.splits["test"].texts
    return run.model.batch(texts, range(len(texts)))


class OfAnother:
    """A tensor of a framework that has DLPack alone."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize(
    "framework",
    [
        torch.tensor,
        lambda x: torch.tensor(x, requires_grad=True),
        lambda x: torch.tensor(x, dtype=torch.bfloat16),
        lambda x: OfAnother(torch.tensor(x)),
        lambda x: np.array(x, dtype=np.float16),
    ],
)
def test_tensors_of_any_framework_come_in(framework):
    run = hm.from_arrays([framework([0.25, 0.75])], readouts=[framework([[1.0], [-2.0]])])
    assert run.model.relevance[0][0, :, 1].tolist() == [1.0, -2.0]


GOOD = {"attention": [[0.5, 0.5], [1.0]], "readouts": [[[1.0], [2.0]], [[3.0]]]}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"attention": [[0.5, 0.5], [-1.0]]}, ["attention[1]", "-1"]),
        ({"attention": [[0.5, np.nan], [1.0]]}, ["attention[0]", "finite"]),
        ({"attention": [[0.0, 0.0], [1.0]]}, ["attention[0]", "above 0"]),
        ({"attention": [[], []]}, ["none"]),
        ({"attention": [[[[1.0]]], [1.0]]}, ["attention[0]", "(1, 1, 1)"]),
        ({"attention": [[[0.5, 0.5]] * 2, [1.0]]}, ["attention[1]", "2 rows", "got 1"]),
        ({"readouts": [[[1.0]], [[3.0]]]}, ["readouts[0]", "(2, ·)", "(1, 1)"]),
        ({"readouts": [[[1.0], [2.0]]]}, ["readouts", "2 instances", "got 1"]),
        ({"readouts": [[[1.0], [2.0]], [[3.0, 4.0]]]}, ["readouts[1]", "1 classes", "got 2"]),
        ({"readouts": [[["x"], ["y"]], [[3.0]]]}, ["readouts[0]", "numbers"]),
        ({"readouts": None}, ["values", "neither"]),
        ({"weight": [[1.0]]}, ["weight", "leave it out"]),
        ({"readouts": None, "values": GOOD["readouts"]}, ["weight"]),
        ({"readouts": None, "values": GOOD["readouts"], "weight": [[1.0, 2.0]]}, ["values[0]", "2", "1"]),
        ({"bias": [1.0, 2.0]}, ["bias", "(1,)", "(2,)"]),
        ({"items": [["a", "b"]]}, ["items", "2 instances"]),
        ({"items": [["a", "b"], ["c", "d"]]}, ["items[1]", "1 names", "got 2"]),
        ({"labels": [0, "no"]}, ["labels[1]", "'no'"]),
        ({"labels": [0]}, ["labels", "2", "got 1"]),
        ({"classes": ["one"]}, ["classes", "2", "got 1"]),
        ({"classes": "no"}, ["classes", "list of names", "str"]),
        ({"labels": ["no", "yes"]}, ["labels[0]", "'no'", "give classes"]),
        ({"attention": [0.5, 0.5]}, ["attention[0]", "one number", "lengths"]),
        ({"predictions": [0.2, 0.9]}, ["predictions[0]", "0.618"]),
        ({"predictions": [0.2]}, ["predictions", "(2, 2)", "(1,)"]),
        ({"predictions": [2.0, 1.0]}, ["predictions", "softmax"]),
        ({"predict": answers}, ["predict", "items"]),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused_in_one_line(options, names):
    with refused(*names):
        hm.from_arrays(**{**GOOD, **options})


@pytest.mark.parametrize(
    ("predict", "names"),
    [
        (lambda texts: answers(texts)[0], ["pair"]),
        (lambda texts: (0 * answers(texts)[0], answers(texts)[1]), ["predict[", "differs"]),
        (lambda texts: (answers(texts)[0], [a[::-1] ** 2 for a in answers(texts)[1]]), ["attention["]),
        (lambda texts: (answers(texts)[0], [a[1:] for a in answers(texts)[1]]), ["attention[0]", "shape"]),
        (lambda texts: (answers(texts)[0][1:], answers(texts)[1]), ["probabilities", "(24, 2)"]),
    ],
)  # fmt: skip
def test_a_function_that_reads_otherwise_is_refused(predict, names):
    with refused(*names, kind=KindError if names == ["pair"] else hm.InputError):
        words_run(predict)


def test_what_a_run_of_arrays_cannot_do_is_refused_in_one_line(tmp_path):
    run = words_run(count=3)
    audit = audit_as(run, QUICK)
    assert audit.save(tmp_path / "run").is_dir()
    with refused("arrays"):
        run.predict("a text")
    with refused("arrays"):
        run.explain("a text")
    with refused("drawn", "leave it out"):
        hm.audit(run, drawn=2, progress=False)
    assert audit.save(tmp_path / "report.html").exists()
    assert "arrays" in repr(run)
    assert CLASSES != run.classes == ["0", "1"]


@pytest.mark.parametrize("names", [None, ["patch a", "patch b"]])
def test_instances_of_other_arrays_are_other_observations_whatever_their_names(names):
    rng = np.random.default_rng(0)
    attention = list(rng.dirichlet(np.ones(2), 12))
    readouts = list(rng.normal(size=(12, 2, 2)))
    attention.append(attention[0])
    readouts.append(readouts[0])
    items = None if names is None else [names] * 13
    run = hm.from_arrays(attention, readouts=readouts, items=items)
    assert [*run.corpus.splits["test"].texts[3]] == [f"3:{name}" for name in names or ["1", "2"]]
    (finding,) = [f for f in hm.audit(run, progress=False).findings if f.key == "permutation"]
    assert (finding.n, finding.distinct) == (13, 13)


def test_instances_with_the_same_names_and_arrays_are_one_observation():
    arrays = {"attention": [[0.25, 0.75]] * 3, "readouts": [[[1.0, 0.0], [0.0, 1.0]]] * 3}
    run = hm.from_arrays(**arrays, items=[["a", "b"]] * 3)
    assert [[*text] for text in run.corpus.splits["test"].texts] == [["a", "b"]] * 3
