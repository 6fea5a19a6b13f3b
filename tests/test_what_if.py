"""The prediction that the page computes under other weights is the model's own, whatever a reader does."""

import copy

import numpy as np
import pytest
import torch
from browsers import chromium, opening, until
from conftest import random_sentences, random_texts, small_model
from made_audits import make_audit
from tiny_audits import QUICK, tiny_audit

from heedmap.data.corpus import Split
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.erasure_predictions import ranked
from heedmap.experiments.registry import make_findings, registered
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.report.anonymous import without_texts
from heedmap.report.page import page as report
from heedmap.runs.audited import Audit
from heedmap.settings.data import DataSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings

__all__ = ["chromium"]
pytestmark = pytest.mark.browser
LENGTHS = (7, 1, 2, 12, 5, 30)
TABLES = ("instances", "relevance", "leave_one_out", "decision_flips", "adversary")
MODELS = {
    "lstm, two classes": {},
    "average, three classes": {"encoder": "average", "classes": 3},
    "cnn, ten classes": {"encoder": "cnn", "classes": 10},
    "equal weights, two classes": {"encoder": "average", "score": "uniform"},
    "sparsemax, four classes": {"normaliser": "sparsemax", "classes": 4},
    "sentences, three classes": {"kind": HierarchicalClassifier, "classes": 3},
}
EDITS = 34  # of each model: 204 in all


def audit_of(model, tokens):
    labels = np.arange(len(tokens)) % len(model.classes)
    split = Split([f"t{i}" for i in range(len(tokens))], tokens, labels)
    context = AuditContext(model, split, QUICK, registered())
    tables = {name: context.table(name) for name in TABLES}
    settings = RunSettings(
        fingerprint="0" * 16,
        data=DataSettings(source="made"),
        model=model.settings,
        train=TrainSettings(),
        audit=QUICK,
    )
    findings = make_findings(tables, QUICK, model.classes, model.settings)
    return Audit(settings, model.classes, tables, findings, {"name": "made"}), split


@pytest.fixture
def opened(chromium, tmp_path):
    """Open an audit's report."""
    with opening(chromium) as open_at:

        def open_report(audit):
            path = tmp_path / "report.html"
            path.write_text(report(audit), "utf-8")
            return open_at(path)

        yield open_report


def show(page, row):
    """Open a text and its what-if; close what was open."""
    for close in page.get_by_role("button", name="Close").all():
        close.click()
    page.locator(".table .body .line").nth(row).click()
    page.locator(".what-if summary").click()
    return page.locator(".what-if")


def weights_on(part):
    return np.array(
        part.locator(".strip").evaluate(
            "strip => [...strip.children].map(word => Number(word.dataset.weight))"
        )
    )


def probabilities_on(part):
    rows = part.locator(".classes tbody").evaluate(
        "body => [...body.rows].map(row => [row.dataset.class, row.querySelector('data').value])"
    )
    return {int(c): float(value) for c, value in rows}


def forward(model, split, row, weights):
    """The model itself, run on the text with these weights."""
    batch = model.batch([split.texts[row]], [0])
    imposed = torch.tensor(weights, dtype=model.precision).reshape(1, 1, -1)
    with torch.no_grad():
        logits = model.logits_from(model.embed(batch), batch, imposed)
    return logits.double().softmax(-1)[0].numpy()


def agrees(part, model, split, row):
    """Compare with the model in its own precision and in a higher one."""
    weights = weights_on(part)
    shown = probabilities_on(part)
    assert len(shown) >= min(8, len(model.classes))
    for same in (model, copy.deepcopy(model).double()):
        expected = forward(same, split, row, weights)
        assert max(abs(p - expected[c]) for c, p in shown.items()) < 1e-6
        own = torch.softmax(same.logits(same.batch([split.texts[row]], [0])).double(), -1)[
            0
        ].numpy()
        tvd = float(part.locator("data.tvd").get_attribute("value"))
        assert abs(tvd - np.abs(own - expected).sum() / 2) < 1e-6


def moved(weights, place, weight):
    """One weight set, the others scaled: written down word by word."""
    if len(weights) == 1:
        return np.ones(1)
    rest = sum(w for t, w in enumerate(weights) if t != place)
    return np.array(
        [
            weight
            if t == place
            else (1 - weight) * w / rest
            if rest > 0
            else (1 - weight) / (len(weights) - 1)
            for t, w in enumerate(weights)
        ]
    )


def edit(page, part, own, order, adversary, rng):
    """Do one random thing; return the weights that must come of it, or None for a shuffle."""
    size, before = len(own), weights_on(part)
    choice = rng.choice(
        ["drag", "drag", "end", "uniform", "shuffle", "adversary", "keep", "erase", "reset"]
    )
    if choice in ("drag", "end") and size > 1:
        place = int(rng.integers(size))
        part.locator(".strip [role=option]").nth(place).click()
        weight = float(rng.integers(0, 1001) / 1000 if choice == "drag" else rng.integers(0, 2))
        part.locator("input[type=range]").fill(f"{weight:g}")
        return moved(before, place, weight)
    if choice in ("keep", "erase"):
        k = int(rng.integers(1, size + 1))
        part.get_by_label("k =").fill(str(k))
        part.get_by_role("button", name=f"{choice.capitalize()} the top").click()
        kept = np.zeros(size)
        kept[order[:k] if choice == "keep" else order[k:]] = 1
        rest = (own * kept).sum()
        return own * kept / rest if rest > 0 else np.zeros(size)
    name = choice.capitalize() if choice in ("uniform", "shuffle", "adversary") else "Reset"
    if name == "Shuffle":
        part.get_by_label("seed").fill(str(rng.integers(1, 1000)))
    part.get_by_role("button", name=name).click()
    return {"Uniform": np.full(size, 1 / size), "Adversary": adversary, "Reset": own}.get(name)


@pytest.mark.parametrize("name", MODELS)
def test_the_page_predicts_as_the_model_itself(opened, name):
    options = MODELS[name]
    model = small_model(**options)
    model.decoder.weight.mul_(6)  # an untrained model predicts nearly the same of everything
    for parameter in model.attention_parameters():
        parameter.mul_(4)
    texts = random_sentences if options.get("kind") else random_texts
    audit, split = audit_of(model, texts(LENGTHS, seed=3))
    page = opened(audit)
    rng = np.random.default_rng(5)
    changes = []
    for row in range(len(LENGTHS)):
        part = show(page, row)
        part.locator(".classes tbody tr").first.wait_for()
        trace = model.trace(model.batch([split.texts[row]], [0]))
        order = ranked(trace.ranked_heatmap, trace.mask)[0].numpy()
        own = np.array(audit.tables["instances"]["attention"][row].as_py())
        own = own / own.sum()
        adversary = np.array(audit.tables["adversary"]["attention"][row].as_py())
        agrees(part, model, split, row)
        assert np.abs(weights_on(part) - own).max() < 1e-12
        for _ in range(EDITS // len(LENGTHS) + (row < EDITS % len(LENGTHS))):
            expected = edit(page, part, own, order, adversary, rng)
            weights = weights_on(part)
            if expected is None:
                assert np.abs(np.sort(weights) - np.sort(own)).max() < 1e-7
            else:
                assert np.abs(weights - expected).max() < 1e-6
            agrees(part, model, split, row)
            changes.append(float(part.locator("data.tvd").get_attribute("value")))
    assert len(changes) == EDITS
    assert max(changes) > 0.01


def test_a_weight_is_dragged_by_keyboard_to_either_end_and_back(opened):
    model = small_model()
    audit, split = audit_of(model, random_texts((2, 6)))
    page = opened(audit)
    part = show(page, 1)
    word = part.locator(".strip [role=option]").first
    word.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    slider = part.get_by_role("slider")
    slider.focus()
    page.keyboard.press("End")
    assert weights_on(part).tolist() == [0, 0, 0, 0, 1, 0]
    agrees(part, model, split, 1)
    page.keyboard.press("Home")
    assert weights_on(part) == pytest.approx([0.2, 0.2, 0.2, 0.2, 0, 0.2])
    agrees(part, model, split, 1)
    part.get_by_role("button", name="Reset").press("Enter")
    assert float(part.locator("data.tvd").get_attribute("value")) == 0


def test_the_same_seed_gives_the_same_shuffle_and_one_word_has_all_weight(opened):
    audit, _ = audit_of(small_model(), random_texts((1, 9)))
    page = opened(audit)
    part = show(page, 1)
    orders = []
    for seed in ("3", "4", "3"):
        part.get_by_label("seed").fill(seed)
        part.get_by_role("button", name="Shuffle").click()
        orders.append(weights_on(part).tolist())
    assert orders[0] == orders[2] != orders[1]
    part = show(page, 0)
    assert part.get_by_role("slider").is_disabled()
    part.get_by_role("button", name="Erase the top").click()
    assert weights_on(part).tolist() == [0]


def test_what_a_reader_set_stays_while_another_text_is_opened(opened):
    audit, _ = audit_of(small_model(), random_texts((5, 9)))
    page = opened(audit)
    part = show(page, 0)
    part.get_by_role("button", name="Uniform").click()
    page.get_by_role("button", name="Pin").click()
    page.locator(".table .body .line").nth(1).click()
    until(page, "document.querySelectorAll('.opened').length === 2")
    assert weights_on(page.locator(".what-if").first) == pytest.approx(np.full(5, 0.2))


def test_the_smallest_set_is_struck_through(opened):
    audit, _ = audit_of(small_model(classes=3), random_texts((6, 8, 1, 9, 7, 12)))
    sets = audit.tables["decision_flips"]["smallest_set"].to_pylist()
    counts = audit.tables["decision_flips"]["count_exact"].to_pylist()
    assert [len(s or []) for s in sets] == [count or 0 for count in counts]
    assert any(sets)
    page = opened(audit)
    for row, places in enumerate(sets):
        show(page, row)
        struck = page.locator(".lines thead th:has(s)").evaluate_all(
            "words => words.map(word => Number(word.dataset.word))"
        )
        assert struck == (places or [])
        assert page.locator(".struck").count() == (places is not None)


def test_an_older_audit_says_that_a_new_one_is_needed(opened):
    page = opened(make_audit(n=20))
    part = show(page, 0)
    assert "a new audit is needed" in part.inner_text()
    assert part.get_by_role("slider").count() == 0
    assert page.locator(".struck").count() == 0


def test_without_texts_nothing_tells_what_a_word_says():
    audit = tiny_audit("own")
    assert "relevance" in audit.tables
    bare = without_texts(audit)
    assert "relevance" not in bare.tables
    assert "read-outs-block" in report(audit)
    assert 'class="read-outs-block"' not in report(bare)


@pytest.mark.slow
def test_a_transformer_shows_what_the_audit_tried(opened):
    audit = tiny_audit("transformer")
    page = opened(audit)
    part = show(page, 0)
    assert "further layers" in part.inner_text()
    even = audit.tables["permutation"]["uniform_tvd"][0].as_py()
    row = part.locator(".tried tr", has_text="all weights equal")
    assert row.locator("td").first.inner_text() == f"{even:.3f}"
