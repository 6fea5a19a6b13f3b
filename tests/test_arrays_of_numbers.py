"""Arrays of a model that gives a number: exact answers about other weights, in deviations of the outputs."""

import json

import numpy as np
import pytest
import torch
from wording import refused

import heedmap as hm
from heedmap.counterfactual.exact import number_adversary
from heedmap.measures import jensen_shannon

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 9, 40)
VOCABULARY = {f"w{i}": (RNG.normal(), RNG.normal(scale=2)) for i in range(30)}
ITEMS = [[f"w{i}" for i in RNG.choice(30, size, replace=False)] for size in SIZES]
BIAS = 5.0


def read(names):
    """The weights of a text's words, what each says, and the number: a pooling in plain NumPy."""
    scores, said = (np.array([VOCABULARY[name][k] for name in names]) for k in (0, 1))
    weights = np.exp(scores) / np.exp(scores).sum()
    return weights, said, float(weights @ said + BIAS)


def predict(texts):
    return np.array([read(names)[2] for names in texts]), [read(names)[0] for names in texts]


def run_of(**options):
    weights, said, outputs = zip(*map(read, ITEMS), strict=True)
    labels = np.array(outputs) + RNG.normal(scale=0.2, size=len(ITEMS))
    return hm.from_arrays(
        [*weights], readouts=[*said], bias=[BIAS], items=ITEMS, labels=labels, unit="points",
        predictions=np.array(outputs), **options,
    )  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 3.0])
def test_no_weights_at_nearly_the_same_number_are_farther(size, tolerance):
    generator = torch.Generator().manual_seed(size)
    attention = torch.randn(5, size, generator=generator).double().softmax(-1)
    said = torch.randn(5, size, 1, generator=generator).double()
    mask, bias = torch.ones(5, size, dtype=torch.bool), torch.tensor([0.7]).double()
    optimum = number_adversary(attention, said, bias, mask, tolerance)
    own, best = ((w * said[..., 0]).sum(-1) for w in (attention, optimum.dense(size)))
    assert (abs(best - own) <= tolerance + 1e-9).all()
    assert torch.allclose(optimum.jsd, jensen_shannon(optimum.dense(size), attention))
    # Every kind of weighting: sharp and flat, and moved towards the model's own until the number stays.
    tried = torch.cat(
        [
            (scale * torch.randn(4000, 5, size, generator=generator).double()).softmax(-1)
            for scale in (1.0, 4.0, 20.0)
        ]
    )
    off = (tried * said[..., 0]).sum(-1) - own
    share = (tolerance / abs(off).clamp(min=1e-12)).clamp(max=1.0).unsqueeze(-1)
    tried = attention + share * (tried - attention)
    jsd = jensen_shannon(tried, attention.expand_as(tried)).amax(0)
    assert (jsd <= optimum.jsd + 1e-9).all()
    if size == 2 and tolerance == 0.0:
        assert torch.allclose(optimum.jsd, torch.zeros(5).double(), atol=1e-9)


def test_a_negative_tolerance_is_refused():
    one = torch.ones(1, 1).double()
    with pytest.raises(ValueError, match="tolerance >= 0"):
        number_adversary(one, one.unsqueeze(-1), torch.zeros(1).double(), one.bool(), -1.0)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    run = run_of(out=tmp_path_factory.mktemp("arrays") / "run")
    return run, hm.audit(run, permutations=20, progress=False)


def test_the_adversary_is_exact_and_stays_within_the_tolerance(audited):
    _, audit = audited
    outputs = np.array([read(names)[2] for names in ITEMS])
    instances, table = audit["instances"], audit["adversary"]
    assert [row[0] for row in instances["probabilities"]] == pytest.approx(outputs, abs=1e-5)
    assert "search_jsd" not in table
    assert (table["jsd"] == table["jsd_upper"]).all()
    for row, names in enumerate(ITEMS):
        _, said, number = read(names)
        imposed = np.array(table["attention"][row])
        assert abs(imposed @ said + BIAS - number) <= 0.01 * outputs.std() + 1e-6
        assert np.diff(table["curve_lower"][row]).min() >= -1e-9
        assert table["dimension"][row] == max(0, len(names) - 2)
    finding = next(finding for finding in audit.findings if finding.key == "adversary")
    assert "within 0.01 standard deviations of its output (which is " in finding.measure
    long_enough = SIZES > 1
    assert finding.value == pytest.approx(table["jsd"][long_enough].mean() / np.log(2))


def test_changes_under_other_weights_are_differences_in_the_unit(audited):
    _, audit = audited
    for row, names in enumerate(ITEMS):
        _, said, number = read(names)
        even = abs(said.mean() + BIAS - number)
        assert audit["permutation"]["uniform_tvd"][row] == pytest.approx(even, abs=1e-5)
    skill = audit.findings[0]
    assert skill.key == "skill"
    assert "R²" in skill.measure


def test_a_run_is_opened_again_and_its_pages_speak_of_numbers(audited):
    run, _ = audited
    again = hm.open_run(run.folder)
    assert again.classes == ["points"]
    assert again.corpus.fingerprint() == run.corpus.fingerprint()
    page = (run.folder / "report.html").read_text("utf-8")
    assert "the model gives a number" in page
    assert "the prediction may move by (standard deviations of the outputs)" in page
    assert "Of a number the most different weights are computed exactly. The papers" in " ".join(
        page.split()
    )
    assert json.loads((run.folder / "findings.json").read_text("utf-8"))["findings"]


def test_with_a_function_the_number_is_read_again():
    audit = hm.audit(run_of(predict=predict), permutations=5, progress=False)
    outputs = np.array([read(names)[2] for names in ITEMS])
    row = int(SIZES.argmax())
    without = [read([*ITEMS[row][:j], *ITEMS[row][j + 1 :]])[2] for j in range(SIZES[row])]
    signed = audit["leave_one_out"]["signed"][row]
    assert signed.tolist() == pytest.approx((outputs[row] - np.array(without)).tolist(), abs=1e-5)
    assert "the number's lead" in " ".join(audit.bottom_line.measured)
    assert audit.bottom_line.rates.startswith("not known")


def test_without_labels_the_share_of_variance_is_not_known():
    run = hm.from_arrays([[0.5, 0.5]] * 6, readouts=[[float(i), 1.0] for i in range(6)], unit="mm")
    audit = hm.audit(run, permutations=5, progress=False)
    (skill,) = (finding for finding in audit.findings if finding.key == "skill")
    assert skill.measure == "share of the labels' variance explained (R²), audited test instances"
    assert skill.left_out == {"no label": 6}


def test_what_does_not_fit_a_number_is_refused():
    with refused("one output", "2"):
        hm.from_arrays([[1.0]], readouts=[[[1.0, 2.0]]], unit="points")
    with refused("unit", "no classes"):
        hm.from_arrays([[1.0]], readouts=[[1.0]], unit="points", classes=["a", "b"])
    for unit in (3, " ", ["mm"]):
        with refused("unit", "such as 'mm'", repr(unit)):
            hm.from_arrays([[1.0]], readouts=[[1.0]], unit=unit)
    with refused("labels", "2 numbers"):
        hm.from_arrays([[1.0]] * 2, readouts=[[1.0], [2.0]], unit="points", labels=[1.0])
    with refused("predictions[1]", "Σ α R + b"):
        hm.from_arrays([[1.0]] * 2, readouts=[[1.0], [2.0]], unit="points", predictions=[1.0, 3.0])
