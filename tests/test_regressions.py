"""Models that give a number: changes are in its unit, and questions about decisions are not asked."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from packed_texts import content
from tiny_regressions import (
    ARCHITECTURES,
    number_model,
    plain_number,
    rated_texts,
    saved_number_model,
    write_ratings,
)
from tiny_transformers import TEXTS, tiny_model
from wording import refused

import heedmap as hm
from heedmap.experiments import chunks
from heedmap.experiments.bottom_line import bottom_line, kind_of
from heedmap.experiments.pooling import by_text
from heedmap.experiments.rates import packaged_rates
from heedmap.experiments.scales import CLASSES, scale_of
from heedmap.huggingface.configurations import find_model
from heedmap.importance.deletions import reread_without_each
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.measures import (
    change_in_prediction,
    drop_in_probability,
    log_odds,
    predictions,
    resolution,
)
from heedmap.report.card import facts
from heedmap.report.page import page
from heedmap.report.text_data import pack_texts

ROUNDING = 1e-5


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_output_is_that_of_transformers(architecture):
    model = number_model(architecture)
    outputs = model.logits(model.batch(TEXTS, range(3)))
    expected = [plain_number(architecture, "".join(text)) for text in TEXTS]
    assert outputs.shape == (3, 1)
    assert outputs[:, 0].tolist() == pytest.approx(expected, abs=ROUNDING)
    trace = model.trace(model.batch(TEXTS, range(3)))
    assert trace.logits[:, 0].tolist() == pytest.approx(expected, abs=ROUNDING)
    assert trace.predicted.tolist() == [0, 0, 0]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_deleted_word_changes_the_output_as_in_a_text_without_it(architecture):
    without = reread_without_each(number_model(architecture), TEXTS)
    for text, outputs in zip(TEXTS[:2], without, strict=False):
        shorter = ["".join([*text[:j], *text[j + 1 :]]) for j in range(len(text))]
        expected = [plain_number(architecture, words) for words in shorter]
        assert outputs[:, 0].tolist() == pytest.approx(expected, abs=2 * ROUNDING)


def _without_queries(architecture):
    """A plain model whose last layer gives every position that it sees the same weight: its queries are 0."""
    model = tiny_model(architecture, 1)
    with torch.no_grad():
        if architecture == "gpt2":
            attention = model.transformer.h[-1].attn.c_attn
            size = attention.weight.shape[0]
            attention.weight[:, :size], attention.bias[:size] = 0.0, 0.0
        elif architecture == "llama":
            model.model.layers[-1].self_attn.q_proj.weight.zero_()
        else:
            query = (
                model.bert.encoder.layer[-1].attention.self.query
                if architecture == "bert"
                else model.distilbert.transformer.layer[-1].attention.q_lin
            )
            query.weight.zero_(), query.bias.zero_()
    return model


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "gpt2", "llama"])
def test_imposed_even_weights_give_what_a_layer_without_queries_gives(architecture):
    model, plain = number_model(architecture), _without_queries(architecture)
    batch = model.batch(TEXTS, range(3))
    trace = model.trace(batch)
    even = trace.support.float() / trace.support.float().sum(-1, keepdim=True)
    expected = [plain_number(architecture, "".join(text), plain) for text in TEXTS]
    imposed = model.predict(trace, even.unsqueeze(0))[0, :, 0]
    assert imposed.tolist() == pytest.approx(expected, abs=ROUNDING)
    with torch.no_grad():
        whole_pass = model.logits_from(model.embed(batch), batch, even)[:, 0]
    assert whole_pass.tolist() == pytest.approx(expected, abs=ROUNDING)
    assert (imposed - trace.logits[:, 0]).abs().max() > 1e-3


def test_measures_of_one_output_are_differences():
    original, changed = torch.tensor([[3.0], [-1.0]]), torch.tensor([[2.5], [1.0]])
    assert change_in_prediction(original, changed).tolist() == [0.5, 2.0]
    assert drop_in_probability(original, changed, torch.zeros(2).long()).tolist() == [0.5, -2.0]
    assert log_odds(original, 0).tolist() == [3.0, -1.0]
    assert predictions(original).tolist() == [[3.0], [-1.0]]
    # Two sums of which each is 4 ε of the largest output off.
    error = 2 * 4 * torch.finfo(torch.float32).eps * 100
    assert resolution(torch.tensor([3.0]), torch.tensor([[100.0]]), torch.float32) == error


def test_the_gradient_is_that_of_the_output():
    model = number_model("bert", view="row")
    batch = model.batch(TEXTS[:1], [0])
    trace = model.trace(batch)
    found = gradient_importance(model, batch, trace, path="open", quantity="log-odds")
    embedded = model.embed(batch).requires_grad_(True)
    plain = tiny_model("bert", 1)
    position = torch.arange(batch.ids.shape[1])
    with torch.enable_grad():
        output = plain(inputs_embeds=embedded, position_ids=position.unsqueeze(0)).logits.sum()
    (slope,) = torch.autograd.grad(output, embedded)
    by_position = (slope * embedded).sum(-1).detach()
    by_word = [
        abs(by_position[0, batch.words[0] == word].sum().item()) for word in range(len(TEXTS[0]))
    ]
    assert found[0].tolist() == pytest.approx(by_word, rel=1e-4)
    _, errors = integrated_gradients(model, batch, trace, 200)
    assert errors.max() < 0.1


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """An audit of a model that gives a number, on texts that have one."""
    folder = tmp_path_factory.mktemp("number")
    texts, labels = rated_texts()
    data = write_ratings(folder / "data.csv", texts, labels)
    run = hm.open_model(
        saved_number_model(folder / "model"), data, unit="stars", out=folder / "run"
    )
    return texts, labels, run, hm.audit(run, permutations=20, progress=False)


def test_the_tables_hold_outputs_and_changes_in_its_unit(rated):
    texts, labels, run, audit = rated
    outputs = [plain_number("bert", text) for text in texts]
    instances, shuffled = audit["instances"], audit["permutation"]
    assert [row[0] for row in instances["probabilities"]] == pytest.approx(outputs, abs=ROUNDING)
    assert instances["amount"].tolist() == pytest.approx(labels)
    assert instances["label"].isna().all()
    row = max(range(len(texts)), key=lambda i: len(texts[i].split()))
    words = texts[row].split()
    without = [
        plain_number("bert", " ".join(words[:j] + words[j + 1 :])) for j in range(len(words))
    ]
    changes = [outputs[row] - other for other in without]
    assert audit["leave_one_out"]["signed"][row].tolist() == pytest.approx(changes, abs=1e-4)
    sizes = audit["leave_one_out"]["importance"][row].tolist()
    assert sizes == pytest.approx([abs(change) for change in changes], abs=1e-4)
    even = plain_number("bert", texts[row], _without_queries("bert"))
    assert shuffled["uniform_tvd"][row] == pytest.approx(abs(even - outputs[row]), abs=1e-4)
    assert run.predict_proba(texts[:2])[:, 0] == pytest.approx(outputs[:2], abs=ROUNDING)
    with refused("gives a number", "predict_proba"):
        run.predict(texts[:2])


def test_findings_are_in_standard_deviations_and_name_the_unit(rated):
    texts, _, _, audit = rated
    deviation = np.std([plain_number("bert", text) for text in texts])
    finding = next(finding for finding in audit.findings if finding.key == "uniform")
    expected = np.median(audit["permutation"]["uniform_tvd"]) / deviation
    assert finding.value == pytest.approx(expected, rel=1e-4)
    assert "standard deviations" in finding.measure
    assert "stars" in finding.meaning
    assert "TVD" not in f"{finding.measure} {finding.meaning}"
    judged = {"needed", "sufficient"}
    assert not any(finding.by_class for finding in audit.findings if finding.key not in judged)
    assert scale_of(audit.tables["instances"], audit.classes).size == pytest.approx(deviation)
    assert scale_of(audit.tables["instances"], ["no", "yes"]) == CLASSES


def test_skill_is_the_share_of_the_variance(rated):
    texts, labels, _, audit = rated
    outputs = np.array([plain_number("bert", text) for text in texts])
    skill = audit.findings[0]
    error = ((np.array(labels) - outputs) ** 2).sum() / ((labels - np.mean(labels)) ** 2).sum()
    assert skill.value == pytest.approx(1 - error, abs=1e-4)
    assert skill.low < skill.value < skill.high
    assert skill.level == "for"


def test_what_needs_a_decision_is_not_asked_and_the_line_says_why(rated):
    *_, audit = rated
    lacking = {name for name, needs in audit.about["not_asked"].items() if "classes" in needs}
    assert {"decision_flips", "class_erasure", "smallest_change", "erasure"} <= lacking
    assert not lacking & {*audit.tables}
    assert {"leave_one_out", "agreement", "permutation", "baselines", "scan"} <= {*audit.tables}
    line = bottom_line(audit, packaged_rates())
    assert "the number's lead" in line.measured[0]
    assert "the mean of all outputs" in line.measured[0]
    assert "of the answers change" not in " ".join(line.measured)
    assert "Shuffles move the output by" in " ".join(line.measured)
    assert kind_of(audit) == "transformer that gives a number"
    said = dict(facts(audit))
    assert said["output"].startswith("a number, in stars: mean ")
    assert "classes" not in said
    assert "gives a number" in said["not asked"]


def test_words_are_left_out_by_the_map_and_the_number_read_again(rated):
    texts, _, _, audit = rated
    table, maps = audit["highlights"], audit["instances"]["attention"]
    outputs = np.array([plain_number("bert", text) for text in texts])
    deviation, mean = outputs.std(), outputs.mean()
    asked = 0
    for row, text in enumerate(texts):
        words, heat, whole = text.split(), np.array(maps[row]), abs(outputs[row] - mean)
        assert table["above"][row] == pytest.approx((outputs[row] - mean) / deviation, abs=1e-4)
        assert table["probability"][row] == pytest.approx(whole / deviation, abs=1e-4)
        if len(words) < 3:
            assert np.isnan(table["gone_map"][row])
            continue
        if not table["highlighted"][row] or len(np.unique(heat.round(6))) < len(words):
            continue  # words that tie come in several orders

        def lead(places, words=words, row=row, whole=whole):
            read = plain_number("bert", " ".join(words[i] for i in sorted(places)))
            side = 1 if outputs[row] >= mean else -1
            return min(max(side * (read - mean), -whole), whole) / deviation

        order = np.argsort(-heat).tolist()
        without = [lead(order[k:]) for k in range(1, len(words) // 3 + 1)]
        gone = max(0, whole / deviation - min(without))
        assert table["gone_map"][row] == pytest.approx(gone, abs=1e-4)
        alone = lead(order[: int(table["highlighted"][row])])
        assert table["alone_map"][row] == pytest.approx(alone, abs=1e-4)
        assert table["alone_stays_map"][row] == (alone > 0)
        asked += 1
    assert asked > 5


def test_what_is_gone_and_what_stays_are_shares_of_the_distance_from_the_mean(rated):
    *_, audit = rated
    table = audit["highlights"]
    asked = table["gone_map"].notna()
    by_key = {finding.key: finding for finding in audit.findings}
    lead = table["probability"][asked].sum()
    needed, sufficient = by_key["needed"], by_key["sufficient"]
    assert needed.value == pytest.approx(table["gone_map"][asked].sum() / lead)
    kept = np.where(table["highlighted"] > 0, table["alone_map"], 0.0)[asked]
    assert sufficient.value == pytest.approx(kept.sum() / lead)
    assert "lead over the mean of all outputs" in needed.measure
    assert "stars on average" in needed.meaning
    assert set(needed.by_class) == {"below the mean", "above the mean"}
    assert not any("guess" in finding.measure for finding in audit.findings)


def test_a_run_is_opened_again_with_its_numbers(rated):
    _, labels, run, _ = rated
    again = hm.open_run(run.folder)
    assert again.corpus.fingerprint() == run.corpus.fingerprint()
    assert again.corpus.splits["test"].amounts.tolist() == pytest.approx(labels)
    assert again.classes == ["stars"]
    assert "numbers as labels" in repr(again.corpus)


@pytest.mark.filterwarnings("ignore:.*texts")
def test_labels_are_optional_and_one_constant_output_has_no_deviations(tmp_path):
    folder = saved_number_model(tmp_path / "model", id2label={0: "points"})
    with pytest.warns(UserWarning, match="no label column .* similarity"):
        run = hm.open_model(folder, ["a great film", "bad", "a great film .", "bad film"] * 2)
    assert run.classes == ["points"]
    audit = hm.audit(run, permutations=5, progress=False)
    assert "no labels" in audit.findings[0].reading
    same = hm.open_model(folder, ["a great film ."] * 3, labels=[1, 2.5, -1])
    assert same.corpus.splits["test"].amounts.tolist() == [1, 2.5, -1]
    audit = hm.audit(same, permutations=5, progress=False)
    by_key = {finding.key: finding for finding in audit.findings}
    assert np.isnan(by_key["permutation"].value)
    assert by_key["permutation"].reading == "undefined"
    assert np.isfinite(audit["permutation"]["median_tvd"]).all()


def test_labels_that_are_no_numbers_are_one_line(tmp_path):
    folder = saved_number_model(tmp_path / "model")
    with refused("line 3", "number", "'good'"):
        hm.open_model(folder, write_ratings(tmp_path / "a.csv", ["a film", "bad"], ["1.5", "good"]))
    with refused("number", "'inf'"):
        hm.open_model(folder, write_ratings(tmp_path / "b.csv", ["a film", "bad"], ["1.5", "inf"]))
    missing = write_ratings(tmp_path / "c.csv", ["a film", "bad", "a"], ["-1", "nan", "0,5"])
    corpus = hm.open_model(folder, missing).corpus
    assert corpus.splits["test"].amounts.tolist() == [-1, 0.5]
    assert sum(corpus.left_out.values()) == 1


def test_options_of_the_other_kind_are_one_line(tmp_path):
    number = saved_number_model(tmp_path / "number")
    assert find_model(number).outputs()[0] == ["units of the output"]
    for label in ("classes", "output"):
        with refused(f"--{label}"):
            hm.open_model(number, ["a film"], **{label: ("a",) if label == "classes" else "a"})
    with refused("--unit", "one line"):
        find_model(number).outputs(unit=" ")
    classes = tiny_model("bert", 2)
    classes.save_pretrained(tmp_path / "classes")
    with refused("--unit stars", "gives a number", "leave it out"):
        find_model(tmp_path / "classes").outputs(unit="stars")


def test_a_text_is_explained_by_its_number(rated):
    texts, _, run, _ = rated
    number = plain_number("bert", texts[0])
    explanation = run.explain(texts[0])
    assert explanation.answer == f"{number:.3f} stars"
    said = str(explanation)
    assert f"predicted {number:.3f} stars" in said
    assert "decides between no classes" in " ".join(said.split())
    assert "flips the answer to" not in said
    assert "Underlined" not in explanation._repr_html_()
    written = explanation.to_dict()
    assert written["output"] == pytest.approx(number, abs=ROUNDING)
    assert written["unit"] == "stars"
    (window,) = written["windows"]
    assert window["output"] == written["output"]
    of_classes = {"answer", "probabilities", "classes", "epsilon", "flip", "adversary", "smallest"}
    assert not of_classes & {*written, *window}


def test_the_tables_of_explanations_hold_the_number_and_its_unit(rated, heedmap):
    texts, _, run, _ = rated
    done = heedmap("explain", run.folder, texts[0], "--format", "csv")
    assert done.code == 0, done.err
    frame = pd.read_csv(io.StringIO(done.out))
    assert [*frame.columns[:4]] == ["id", "output", "unit", "window"]
    assert not {"answer", "probability", "adversary", "flips"} & {*frame.columns}
    assert frame["output"].tolist() == pytest.approx(
        [plain_number("bert", texts[0])] * len(frame), abs=1e-4
    )
    assert {*frame["unit"]} == {"stars"}


def test_the_page_shows_numbers_with_their_unit(rated):
    *_, run, audit = rated
    page = (run.folder / "report.html").read_text()
    assert "stars" in page
    assert "with probability" not in page.split("<script")[0]
    tables = {name: audit.tables[name] for name in audit.tables}
    index = json.loads(content(pack_texts(tables, audit.classes, []).index))
    assert index["unit"] == "stars"
    assert index["confidence"][0] == pytest.approx(plain_number("bert", rated[0][0]), abs=1e-4)
    names = [fact["name"] for fact in index["facts"]]
    assert "label" in names
    assert not any("TVD" in name for name in names)


def test_how_to_read_is_written_for_numbers(rated):
    *_, run, audit = rated
    report = " ".join((run.folder / "report.html").read_text().split("<body>")[1].split())
    assert "below and above the mean" in report
    assert "By predicted class" not in report
    reading = report.split('<section id="reading">')[1].split("</section>")[0]
    assert "<dt>Lead</dt><dd>The distance of the output from the mean of all outputs." in reading
    for words in ("TVD", "Comprehensiveness", "of a guess", "another class", "classes"):
        assert words not in reading
    assert "The most different weights are the best that a search" in reading
    tables = {name: table for name, table in audit.tables.items() if name != "adversary"}
    without = " ".join(page(replace(audit, tables=tables)).split())
    assert "Within 0.01 standard deviations of the outputs. </dd>" in without


def test_drawn_numbers_are_compared_with_those_of_all_texts_that_may_be_drawn(rated):
    texts, _, run, whole = rated
    drawn = hm.audit(replace(run, folder=None), drawn=18, permutations=2, progress=False)
    numbers = np.array([plain_number("bert", text) for text in texts])
    table = drawn["instances"]
    assert len(table) == 18
    for name, expected in {"mean": numbers.mean(), "deviation": numbers.std()}.items():
        assert np.unique(table[f"outputs_{name}"]) == pytest.approx([expected], abs=ROUNDING)
    assert set(table["outputs_texts"]) == {len(texts)}
    above = (np.array(table["probabilities"].to_list())[:, 0] - numbers.mean()) / numbers.std()
    assert drawn["highlights"]["above"].to_list() == pytest.approx(above, abs=1e-4)
    assert scale_of(drawn.tables["instances"], drawn.classes).size == pytest.approx(numbers.std())
    # What is known of a text does not depend on how many others were drawn.
    in_whole = whole["highlights"].set_index(whole["instances"]["key"])
    in_drawn = drawn["highlights"].set_index(table["key"])
    same = in_whole.loc[in_drawn.index]
    for name in ("gone_map", "alone_map", "probability", "above"):
        expected = same[name].to_list()
        assert in_drawn[name].to_list() == pytest.approx(expected, abs=1e-4, nan_ok=True)
    (change,) = {finding.measure for finding in drawn.findings if finding.key == "permutation"}
    assert f"the outputs of {len(texts)} texts, those that were drawn among them" in change


def test_numbers_are_drawn_until_the_bottom_line_is_certain_or_the_time_is_over(rated):
    _, _, run, whole = rated
    audit = hm.audit(replace(run, folder=None), minutes=60, permutations=2, progress=False)
    budget = audit.about["budget"]
    assert budget["certain"]
    assert budget["texts"] <= budget["of"] == len(whole["instances"])
    assert audit.bottom_line.answer == whole.bottom_line.answer
    stopped = hm.audit(replace(run, folder=None), minutes=1e-9, permutations=2, progress=False)
    assert stopped.about["budget"]["texts"] == 1
    assert stopped.bottom_line.answer == "cannot tell"


def test_chunks_of_numbers_are_compared_with_those_of_all_texts(monkeypatch):
    rng = np.random.default_rng(0)
    states = [rng.normal(size=(n, 3)) for n in rng.integers(1, 6, 25)]
    weights = [np.full(len(s), 1 / len(s)) for s in states]
    arrays = {"weight": rng.normal(size=(1, 3)), "bias": np.zeros(1), "unit": "mm"}
    run = hm.from_arrays(attention=weights, values=states, **arrays)
    whole = hm.audit(run, progress=False)
    monkeypatch.setattr(chunks, "TEXTS", 10)
    parts = hm.audit(run, progress=False)
    assert scale_of(parts.tables["instances"], ["mm"]) == scale_of(
        whole.tables["instances"], ["mm"]
    )
    for name in ("jsd", "tvd", "outputs"):
        if name in whole["adversary"]:
            assert parts["adversary"][name].to_list() == whole["adversary"][name].to_list()


def test_what_rests_on_classes_is_refused(rated, heedmap, tmp_path):
    *_, run, _ = rated
    done = heedmap("picture", run.folder, "a film", "--out", tmp_path / "picture.html")
    assert done.code == 2
    assert "gives a number" in done.err
    explained = heedmap("explain", run.folder, "a film")
    assert explained.code == 0
    assert " stars" in explained.out


def test_a_text_read_in_windows_has_the_mean_of_their_numbers(tmp_path):
    folder = saved_number_model(tmp_path / "model")
    texts, _ = rated_texts(8)
    texts.append(" ".join(["the film is great"] * 12))
    labels = [float(i) for i in range(len(texts))]
    run = hm.open_model(folder, texts, labels=labels, long_texts="windows")
    audit = hm.audit(run, permutations=5, progress=False)
    pooled = by_text(audit.tables)["instances"].to_pandas()
    windows = audit["instances"]
    last = windows[windows["text"] == len(texts) - 1]
    assert len(last) > 1
    numbers = [plain_number("bert", " ".join(tokens)) for tokens in last["tokens"]]
    assert pooled["probabilities"].iloc[-1][0] == pytest.approx(np.mean(numbers), abs=1e-4)
    assert pooled["amount"].tolist() == labels


def test_the_most_different_weights_keep_the_number_in_a_whole_pass(rated):
    texts, _, run, audit = rated
    deviation = np.std([plain_number("bert", text) for text in texts])
    table, reopened = audit["adversary"], hm.open_run(run.folder)
    assert "search_jsd" not in table
    for row, text in enumerate(texts[:6]):
        imposed = hm.check_adversary(reopened, row)
        assert imposed.tvd == pytest.approx(table["tvd"][row], abs=1e-5)
        assert imposed.tvd <= 0.01 * deviation + 1e-5
        assert imposed.jsd == pytest.approx(table["jsd"][row], abs=1e-4)
        assert table["jsd"][row] > 0 or len(text.split()) == 1
    finding = next(finding for finding in audit.findings if finding.key == "adversary")
    assert "within 0.01 standard deviations of its output (which is " in finding.measure
    assert "stars" in finding.measure
    assert finding.value == pytest.approx(
        table["jsd"][[" " in t for t in texts]].mean() / np.log(2)
    )
