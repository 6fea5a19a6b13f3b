"""The numbers of a reproduction of Jain & Wallace: published, ours, and of several calls together."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from wording import refused, warned

import heedmap as hm
from heedmap.papers.jain_wallace.claims import claims
from heedmap.papers.jain_wallace.lines import lines
from heedmap.papers.jain_wallace.measures import TAUS, Cell, Measured, measured, numbers_of
from heedmap.papers.jain_wallace.numbers import DatasetNumbers, joined, read
from heedmap.papers.jain_wallace.published import published
from heedmap.papers.jain_wallace.result import result
from heedmap.papers.jain_wallace.settings import RECIPES
from heedmap.papers.kit.render import latex, markdown


def test_published_numbers_are_the_authors_files():
    known = published()
    assert known["sst", "lstm", "additive", "f1", "Overall"].value == pytest.approx(
        0.78352, abs=1e-5
    )
    gradient = known["sst", "lstm", "additive", "attention~gradient", "0"]
    assert (round(gradient.value, 2), round(gradient.std, 2), gradient.significant) == (
        0.34,
        0.21,
        0.48,
    )
    assert math.isnan(known["imdb", "average", "dot", "attention~gradient", "1"].value)
    assert {key[0] for key in known} == set(RECIPES)
    assert len({key[:3] for key in known}) == 72


def number(seed, value, quantity="attention~gradient", std=0.2):
    cell = Cell("sst", "lstm", "additive", seed)
    return Measured(cell, quantity, "0", value, std, 0.5, 10, 1)


@pytest.mark.parametrize(("values", "inside"), [((0.3, 0.5), "yes"), ((0.6, 0.61), "no")])
def test_ours_is_the_mean_over_seeds_with_the_least_and_the_largest(values, inside):
    (line,) = lines([DatasetNumbers("sst", "paper", [number(i, v) for i, v in enumerate(values)])])
    assert (line.ours, line.ours_min, line.ours_max) == (np.mean(values), *values)
    assert (line.seeds, line.n, line.undefined) == (2, 20, 2)
    assert (
        line.inside == inside
    )  # published .34; another seed would be in .4 ± 1.6, or in .605 ± .08
    assert "425a89a" in line.source


def test_a_seed_without_a_value_does_not_make_the_mean_undefined_and_no_range_is_claimed_for_it():
    (line,) = lines([DatasetNumbers("sst", "paper", [number(0, 0.4), number(1, math.nan)])])
    assert line.ours == line.ours_min == line.ours_max == 0.4
    (line,) = lines([DatasetNumbers("sst", "paper", [number(0, math.nan)])])
    assert math.isnan(line.ours)
    assert line.inside == ""


@pytest.mark.parametrize(("values", "named"), [((0.3, 0.5), False), ((0.6, 0.61), True)])
def test_a_published_number_outside_of_ours_is_named_in_the_notes(values, named):
    cells = [Cell("sst", "lstm", "additive", seed) for seed in range(2)]
    kept = [
        Measured(cell, "attention~gradient", "Overall", value, 0.2, 0.5, 10, 0)
        for cell, value in zip(cells, values, strict=True)
    ]
    notes = " ".join(result([DatasetNumbers("sst", "paper", kept)]).notes)
    sentence = "Published and outside our interval: sst lstm additive, attention~gradient 0.351."
    assert (sentence in notes) == named


def test_a_claim_without_a_finished_model_names_no_seeds():
    """Of the average encoder alone the claims about encoders that read context have no numbers."""
    cell = Cell("sst", "average", "additive", 0)
    kept = [Measured(cell, "attention~gradient", "Overall", 0.4, 0.2, 0.5, 10, 0)]
    dataset = DatasetNumbers("sst", "paper", kept)
    for claim in claims([dataset], lines([dataset])):
        assert claim.verdict == "undecided"
        assert claim.basis == "No model that this is claimed of is finished."


def test_what_is_not_published_has_no_source():
    (line,) = lines([DatasetNumbers("sst", "paper", [number(0, 0.4, "gradient~leave_one_out")])])
    assert (line.source, line.inside) == ("", "")
    assert math.isnan(line.published)


def test_distances_are_of_texts_with_a_choice_and_of_what_the_search_found():
    tables = {
        "instances": pa.table({"predicted": [0, 1, 1], "n_tokens": [1, 5, 6]}),
        "agreement": pa.table(
            {f"{kind}_{of}": [None, 0.2, 0.4] for of in TAUS.values() for kind in ("tau", "p")}
        ),
        "permutation": pa.table({"median_tvd": [0.0, 0.2, 0.4], "uniform_tvd": [0.0, 0.1, 0.1]}),
        "adversary": pa.table(
            {"jsd": [0.0, 0.5, 0.6], "search_jsd": [0.0, 0.0, 0.3], "search_found": [False, False, True]}
        ),
    }  # fmt: skip
    found = {
        one.quantity: one for one in numbers_of(Cell("sst", "lstm", "dot", 0), tables, ["a", "b"])
    }
    median, search = (
        found[name] for name in ("permutation: median TVD", "adversary: JSD by the paper's search")
    )
    assert (median.value, median.n, median.undefined) == (pytest.approx(0.3), 2, 1)
    assert (search.value, search.n, search.undefined) == (0.3, 1, 2)


def made(encoder, seed, **more):
    numbers = [replace(number(seed, 0.4), cell=Cell("sst", encoder, "dot", seed))]
    return DatasetNumbers("sst", "paper", numbers, **{"basis": {"epochs": "8"}, **more})


def test_models_of_an_earlier_call_stay_in_the_result_in_one_order():
    kept = made("average", 0, baselines=[{"seed": 0}], log_odds=[{"seed": 0}])
    kept = joined(kept, made("lstm", 1))
    kept = joined(kept, made("lstm", 0, baselines=[{"seed": 1}]))
    assert [(one.cell.encoder, one.cell.seed) for one in kept.numbers] == [
        ("lstm", 0), ("average", 0), ("lstm", 1),
    ]  # fmt: skip
    assert [row["seed"] for row in kept.baselines] == [0, 1]
    assert [row["seed"] for row in kept.log_odds] == [0]


def test_what_is_still_to_be_run_is_what_no_call_has_finished():
    cnn, average = (Cell("sst", encoder, "dot", 0) for encoder in ("cnn", "average"))
    stopped = made("lstm", 0, missing=[cnn, average])
    kept = joined(stopped, made("average", 0))
    assert kept.missing == [cnn]
    again = joined(kept, made("lstm", 0, missing=[average]))  # stopped after its first model
    assert again.missing == [cnn]
    assert [one.cell.encoder for one in again.numbers] == ["lstm", "average"]


def test_models_that_were_made_otherwise_are_named_and_not_put_beside():
    before = made("average", 0, basis={"epochs": "2"}, baselines=[{"seed": 0}])
    with warned("1 other model", "epochs: 2 -> 8"):
        kept = joined(before, made("lstm", 0))
    assert [one.cell.encoder for one in kept.numbers] == ["lstm"]
    assert kept.baselines == []


@pytest.mark.slow
def test_a_cells_numbers_are_those_of_its_tables(tmp_path):
    corpus = hm.load("reviews")
    run = hm.train(
        corpus, encoder="average", epochs=1, embedding_size=8, hidden_size=8, out=tmp_path / "r"
    )
    audit = hm.audit(run, instances=60)
    found = {
        (m.quantity, m.predicted): m for m in measured(Cell("sst", "average", "dot", 0), audit)
    }
    frame = audit.to_dataframe("agreement")
    for which, rows in (("Overall", frame), ("1", frame[frame.predicted == 1])):
        taus = rows["tau_attention_gradient"].dropna()
        one = found["attention~gradient", which]
        assert one.value == pytest.approx(taus.mean())
        assert one.std == pytest.approx(taus.std(ddof=0))
        p = rows["p_attention_gradient"][taus.index]
        assert one.significant == pytest.approx((p <= 0.05).mean())
        assert one.n + one.undefined == len(rows)
    whole = corpus.splits["test"]
    assert found["accuracy", "Overall"].n == len(whole)


def test_results_of_several_data_sets_stand_in_one_table(tmp_path):
    for name in ("sst", "imdb"):
        number_of = number(0, 0.4)
        cell = Cell(name, "lstm", "additive", 0)
        kept = {**number_of.__dict__, "cell": cell.__dict__}
        folder = tmp_path / "out" / name
        folder.mkdir(parents=True)
        (folder / "numbers.json").write_text(
            json.dumps({"dataset": name, "rules": "paper", "numbers": [kept], "left_out": {}})
        )
    results = read(tmp_path / "out")
    assert [one.dataset for one in results] == ["imdb", "sst"]
    for text in ("imdb", "sst"):
        assert f"| {text} | lstm | additive |" in markdown(result(results))
    assert r"\bottomrule" in latex(result(results))
    assert "IMDB" in latex(result(results))
    (tmp_path / "out" / "sst" / "numbers.json").write_text("{")
    with refused("numbers.json"):
        read(tmp_path / "out")
