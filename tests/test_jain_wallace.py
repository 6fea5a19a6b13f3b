"""`heedmap reproduce jain-wallace`: cells, published numbers, tables and what is said of missing data."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import heedmap as hm
from heedmap.data.named import NAMED
from heedmap.errors import InputError
from heedmap.papers.jain_wallace.measures import TAUS, Cell, Measured, measured, numbers_of
from heedmap.papers.jain_wallace.published import published
from heedmap.papers.jain_wallace.results import Result, joined, read
from heedmap.papers.jain_wallace.sources import check_apart, locate, needed
from heedmap.papers.jain_wallace.tables import lines
from heedmap.papers.jain_wallace.telling import latex, markdown

QUICK = (
    "--encoders", "average", "--scores", "dot", "--seeds", "2", "--epochs", "2", "--instances", "15",
)  # fmt: skip


@pytest.fixture
def sst(tmp_path):
    """A small data set in SST's place, with a word that gives the label away."""
    rng = np.random.default_rng(0)
    place = tmp_path / "data" / "sst"
    place.mkdir(parents=True)
    for name, count in (("train", 80), ("dev", 20), ("test", 20)):
        rows = []
        for i in range(count):
            filler = " ".join(rng.choice(list("abcdefgh"), rng.integers(5, 9)))
            rows.append({"text": f"{'good' if i % 2 else 'bad'} {filler}", "label": i % 2})
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return place


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
    assert {key[0] for key in known} == set(NAMED)
    assert len({key[:3] for key in known}) == 72


def number(seed, value, quantity="attention~gradient", std=0.2):
    cell = Cell("sst", "lstm", "additive", seed)
    return Measured(cell, quantity, "0", value, std, 0.5, 10, 1)


@pytest.mark.parametrize(("values", "inside"), [((0.3, 0.5), "yes"), ((0.6, 0.8), "no")])
def test_ours_is_the_mean_over_seeds_with_the_least_and_the_largest(values, inside):
    (line,) = lines([Result("sst", "paper", [number(i, v) for i, v in enumerate(values)])])
    assert (line.ours, line.ours_min, line.ours_max) == (np.mean(values), *values)
    assert (line.seeds, line.n, line.undefined) == (2, 20, 2)
    assert line.inside == inside  # published .34 ± .21
    assert "425a89a" in line.source


def test_a_seed_without_a_value_does_not_make_the_mean_undefined_and_no_range_is_claimed_for_it():
    (line,) = lines([Result("sst", "paper", [number(0, 0.4), number(1, math.nan)])])
    assert line.ours == line.ours_min == line.ours_max == 0.4
    (line,) = lines([Result("sst", "paper", [number(0, math.nan)])])
    assert math.isnan(line.ours)
    assert line.inside == ""


def test_what_is_not_published_has_no_source():
    (line,) = lines([Result("sst", "paper", [number(0, 0.4, "gradient~leave_one_out")])])
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
    return Result("sst", "paper", numbers, **{"basis": {"epochs": "8"}, **more})


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
    with pytest.warns(UserWarning, match="1 other model is not in the result.*epochs: 2 -> 8"):
        kept = joined(before, made("lstm", 0))
    assert [one.cell.encoder for one in kept.numbers] == ["lstm"]
    assert kept.baselines == []


@pytest.mark.slow
def test_other_models_are_refused_before_the_first_is_trained_unless_insisted_on(
    heedmap, sst, tmp_path
):
    out = tmp_path / "out"
    base = ("reproduce", "jain-wallace", "sst", "--data", sst, "--out", out)
    assert heedmap(*base, *QUICK).code == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    other = (*base, "--encoders", "cnn,average", *QUICK[2:])
    for change, expected in (
        (("--instances", "9"), "instances: 15 -> 9"),
        (("--epochs", "1"), "epochs: 2 -> 1"),
        (("--test-texts", "18"), "other texts"),
        (("--rules", "code"), "rules: paper -> code"),
    ):
        said = heedmap(*other, *change)
        assert said.code == 2
        assert expected in said.err
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    said = heedmap(*base, *QUICK, "--instances", "9", "--overwrite")
    assert said.code == 0, said.err
    assert {one.n for one in read(out)[0].numbers if one.quantity == "permutation: median TVD"} == {
        9
    }


@pytest.mark.slow
def test_the_variants_are_made_from_vectors_that_have_moved_and_from_no_others(
    heedmap, sst, tmp_path
):
    there, elsewhere = tmp_path / "a.txt", tmp_path / "b.txt"
    there.write_text("good 1 2\nbad 2 1\n")
    base = (
        "reproduce", "jain-wallace", "sst", "--data", sst, "--encoders", "lstm", "--scores", "additive",
        "--seeds", "1", "--epochs", "1", "--instances", "10", "--out", tmp_path / "out",
    )  # fmt: skip
    assert heedmap(*base, "--vectors", there).code == 0
    there.rename(elsewhere)
    there.write_text("good 2 1\nbad 2 1\n")
    said = heedmap(*base, "--vectors", there, "--baselines")
    assert said.code == 2
    assert "other vectors" in said.err
    said = heedmap(*base, "--vectors", elsewhere, "--baselines")
    assert said.code == 0, said.err
    assert read(tmp_path / "out")[0].baselines
    assert "a.txt (pretrained for 2 of" not in (tmp_path / "out" / "result.md").read_text()
    assert "b.txt (pretrained for 2 of" in (tmp_path / "out" / "result.md").read_text()
    settings = (tmp_path / "out" / "sst" / "lstm-additive-0" / "settings.toml").read_text()
    assert str(elsewhere) in settings


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


@pytest.mark.slow
def test_the_command_trains_audits_and_tells_and_a_second_time_only_tells(heedmap, sst, tmp_path):
    out = tmp_path / "out"
    said = heedmap("reproduce", "jain-wallace", "sst", "--data", sst, *QUICK, "--out", out)
    assert said.code == 0, said.err
    assert "0.799" in said.out  # published: average, dot
    weights = out / "sst" / "average-dot-1" / "model.safetensors"
    made = weights.stat().st_mtime_ns
    before = {p.name: p.read_bytes() for p in out.glob("result.*")}
    assert sorted(before) == ["result.csv", "result.html", "result.md", "result.tex"]
    rows = list(csv.DictReader((out / "result.csv").read_text().splitlines()))
    f1 = next(row for row in rows if row["quantity"] == "f1")
    assert (f1["encoder"], f1["seeds"], f1["published"][:5]) == ("average", "2", "0.777")
    assert "average-dot-1/report.html" in before["result.html"].decode()
    again = heedmap("reproduce", "jain-wallace", "sst", "--data", sst.parent, *QUICK, "--out", out)
    assert again.code == 0, again.err
    assert weights.stat().st_mtime_ns == made
    assert {p.name: p.read_bytes() for p in out.glob("result.*")} == before
    drawn = heedmap("figures", out, "--format", "svg")
    assert drawn.code == 0, drawn.err
    assert (out / "figures" / "gradient-dot.svg").read_text().startswith("<svg")


def test_results_of_several_data_sets_stand_in_one_table(sst, tmp_path):
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
        assert f"| {text} | lstm | additive |" in markdown(results)
    assert r"\bottomrule" in latex(results)
    assert "IMDB" in latex(results)
    (tmp_path / "out" / "sst" / "numbers.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        read(tmp_path / "out")


@pytest.mark.slow
def test_the_variants_stand_in_the_result_and_are_not_made_twice(heedmap, sst, tmp_path):
    arguments = (
        "reproduce", "jain-wallace", "sst", "--data", sst, "--encoders", "lstm", "--scores", "additive",
        "--seeds", "1", "--epochs", "2", "--instances", "10", "--baselines", "--out", tmp_path / "out",
    )  # fmt: skip
    said = heedmap(*arguments)
    assert said.code == 0, said.err
    told = (tmp_path / "out" / "result.md").read_text()
    for variant in ("logistic regression", "no attention", "log-odds at test", "regularised"):
        assert f"| sst | {variant} | 1 |" in told
    listed = heedmap("figures", tmp_path / "out", "--list").out
    assert "log-odds-violin-sst" in listed
    drawn = heedmap(
        "figures", tmp_path / "out", "--only", "log-odds-scatter-sst", "--format", "svg"
    )
    assert drawn.code == 0, drawn.err
    kept = tmp_path / "out" / "sst" / "baselines-0.json"
    before = kept.stat().st_mtime_ns
    assert heedmap(*arguments).code == 0
    assert kept.stat().st_mtime_ns == before
    assert (tmp_path / "out" / "result.md").read_text() == told


@pytest.mark.slow
def test_by_the_codes_rules_epsilon_the_gradient_and_the_first_epoch_are_the_codes(
    heedmap, sst, tmp_path
):
    out = tmp_path / "out"
    said = heedmap(
        "reproduce", "jain-wallace", "sst", "--data", sst, *QUICK, "--rules", "code", "--out", out
    )
    assert said.code == 0, said.err
    settings = (out / "sst" / "average-dot-0" / "settings.toml").read_text()
    for line in ("epsilon = 0.05", 'gradient_of = "probability"', "first_epoch = false"):
        assert line in settings


def test_without_a_name_the_data_sets_are_listed_with_what_they_need(heedmap, sst):
    said = heedmap("reproduce", "jain-wallace", "--data", sst.parent)
    assert said.code == 0
    for name, one in NAMED.items():
        assert f"{name} ({one.title})" in said.out
    assert f"sst (SST): {sst}" in said.out
    assert "adr (ADR Tweets): not at hand" in said.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mnist",), "expected one of sst"),
        (("diabetes",), "PhysioNet"),
        (("sst", "--encoders", "gru"), "--encoders: expected some of"),
        (("babi_qa1", "--scores", ""), "--scores: expected some of"),
        (("babi_qa1", "--seeds", "0"), "--seeds: expected at least 1"),
        (("babi_qa1", "--rules", "mine"), "rules"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(heedmap, tmp_path, arguments, words):
    said = heedmap(
        "reproduce", "jain-wallace", *arguments, "--data", tmp_path, "--out", tmp_path / "o"
    )
    assert said.code == 2
    assert words in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "o").exists()


def test_a_place_is_the_data_set_itself_or_holds_one_folder_for_each(sst):
    assert locate("sst", sst) == locate("sst", sst.parent) == str(sst)
    assert locate("imdb", sst.parent) is None
    assert locate("imdb", sst.parent, hub=True) == NAMED["imdb"].hub
    assert locate("babi_qa1", sst.parent) == "babi_qa1"
    with pytest.raises(InputError, match="--hub"):
        needed("imdb", sst.parent)
    with pytest.raises(InputError, match="no such file or folder"):
        needed("babi_qa1", sst.parent / "mistyped")


def test_only_data_sets_of_the_same_files_may_share_a_place(sst, tmp_path):
    check_apart({"babi_qa1": str(tmp_path), "babi_qa2": str(tmp_path), "sst": str(sst)})
    check_apart({"diabetes": str(tmp_path), "anemia": str(tmp_path)})  # one export of MIMIC
    with pytest.raises(InputError, match="cannot be babi_qa1 and babi_qa2 at once"):
        check_apart({name: str(sst / "train.jsonl") for name in ("babi_qa1", "babi_qa2")})
    with pytest.raises(InputError, match="cannot be babi_qa1 and babi_qa2 at once"):
        check_apart({"babi_qa1": str(sst), "babi_qa2": str(sst)})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("sst", "--instances", "0"), "instances = 0"),
        (("sst", "--epochs", "0"), "epochs = 0"),
        (("sst", "--vectors", "none.txt"), "none.txt: no such file"),
        (
            ("sst", "babi_qa1"),
            "cannot be sst and babi_qa1 at once; give a folder with one folder for each",
        ),
    ],
)
def test_what_is_wrong_is_said_before_the_first_model_is_trained(
    heedmap, sst, tmp_path, options, expected
):
    said = heedmap("reproduce", "jain-wallace", *options, "--data", sst, "--out", tmp_path / "out")
    assert said.code == 2
    assert expected in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_for_the_result(heedmap, sst, tmp_path):
    (tmp_path / "file").write_text("mine")
    said = heedmap("reproduce", "jain-wallace", "sst", "--data", sst, "--out", tmp_path / "file")
    assert said.code == 2
    assert "expected a folder, found a file" in said.err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
def test_the_result_says_in_what_it_is_smaller_than_the_papers(heedmap, sst, tmp_path):
    out = tmp_path / "out"
    said = heedmap(
        "reproduce", "jain-wallace", "sst", "babi_qa1", "--data", sst.parent, "--encoders", "average,average",
        "--scores", "dot", "--seeds", "1", "--epochs", "1", "--instances", "15", "--train-texts", "60",
        "--test-texts", "18", "--out", out,
    )  # fmt: skip
    assert said.code == 0, said.err
    for name in ("result.md", "result.html", "result.tex"):
        told = (out / name).read_text()
        assert "1 epoch instead of 8" in told
        assert "1 epoch instead of 100" in told
        assert "a sample of 60 of 9000 train texts" in told
        assert "15 of 18 test texts audited" in told
        assert "stories generated by heedmap, not the published ones" in told
    told = (out / "result.md").read_text()
    assert "[" not in told.split("## Performance")[1].split("Mean ±")[0]
