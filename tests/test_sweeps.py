"""`heedmap sweep`: a grid or a list of runs, its forecast, its page, and who reads its folder."""

import math
import shutil

import pytest
from conftest import contents
from tiny_transformers import tiny_model, tiny_tokenizer
from wording import refused, stopped

from heedmap.errors import InputError
from heedmap.papers.kit.render import page
from heedmap.sweeps.plan import Plan, read_plan
from heedmap.sweeps.result import make_result
from heedmap.sweeps.sweep import sweep
from heedmap.training.shards import jobs_folder

SMALL = """
[train]
epochs = 1
embedding_size = 8
hidden_size = 8

[audit]
instances = 6
"""
GRID = """
data = ["texts.csv"]
encoders = ["none"]
normalisers = ["softmax", "sparsemax"]
seeds = [0, 1]
"""


def test_a_grid_runs_every_model_of_a_seed_before_the_next_and_then_the_list(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        'data = ["a.csv", {source = "b/c.csv", label = "stars"}]\nencoders = ["lstm"]\n'
        'models = ["one/two"]\nviews = ["row", "flow"]\nseeds = [3, 1]\n'
        '[[run]]\ndata = "a.csv"\nencoder = "gru"\n'
    )
    plan = read_plan(path)
    assert [str(run) for run in plan.runs] == [
        f"{name}-{seed}"
        for seed in (3, 1)
        for data in "ac"
        for name in (f"{data}-lstm-additive-softmax", f"{data}-two-row", f"{data}-two-flow")
    ] + ["a-gru-additive-softmax-0"]
    assert plan.options_of("b/c.csv") == {"label": "stars"}
    assert plan.options_of("a.csv") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[data", ("sweep.toml", "TOML")),
        ("", ("sweep.toml", "[[run]]", "no run")),
        ('data = ["a"]\nencoders = ["ltsm"]', ("encoder", "ltsm")),
        ('data = ["a"]\nmodels = ["m"]\nviews = ["rows"]', ("view", "rows")),
        ('data = ["a"]\nencoders = ["lstm", "lstm"]', ("a-lstm-additive-softmax-0", "2 times")),
        ('data = ["a/x", "b/x"]\nencoders = ["lstm"]', ("x-lstm-additive-softmax-0", "2 times")),
        ('data = ["a"]\nencoders = ["lstm"]\nseed = 1', ("sweep.toml", "seed", "seeds")),
        ('data = ["a"]', ("sweep.toml", "no run", "for want of encoders or models")),
        ('encoders = ["lstm"]', ("sweep.toml", "no run", "for want of data")),
        ('data = ["a"]\nencoders = ["lstm"]\n[train]\nepoch = 1', ("train.epoch", "epochs")),
        ('data = ["a"]\nencoders = ["lstm"]\n[audit]\nseed = 1', ("audit.seed", "instances")),
        ('data = ["a"]\nencoders = ["lstm"]\n[audit]\ninstances = 0', ("instances",)),
        ('data = [{label = "a"}]\nencoders = ["lstm"]', ("data", "source")),
        ('data = [{source = "a", lable = "a"}]\nencoders = ["lstm"]', ("data.lable", "label")),
    ],
)
def test_a_wrong_plan_is_one_line(heedmap, tmp_path, text, words):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    said = heedmap("sweep", path, "--out", tmp_path / "out")
    assert (said.code, said.err.count("\n")) == (2, 1), said.err
    stopped(said, *words)
    assert not (tmp_path / "out").exists()


def test_a_plan_that_is_not_there_is_one_line(tmp_path):
    with refused(tmp_path / "no.toml", "TOML"):
        read_plan(tmp_path / "no.toml")
    with pytest.raises(InputError, match="no run"):
        read_plan_of_nothing()


def test_the_library_takes_the_file_of_a_plan_as_the_command_does(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('data = ["a"]')
    with refused(path, "for want of encoders or models"):
        sweep(path, out=tmp_path / "out")


def read_plan_of_nothing():
    sweep(Plan(), out="nowhere")


def test_the_page_begins_with_the_answers_and_what_they_rest_on():
    plan = Plan.model_validate({"data": ["a"], "encoders": ["lstm"], "seeds": [0, 1]})
    questions = [
        ("skill", "for", 0.9),
        ("needed", "mixed", 1.2),
        ("tau_gradient", "for comparison", 0.3),
    ]
    measure = "share of the lead over guessing that the answers lose without the map's first words"
    rows = [
        {
            "run": str(run), "data": "a", "model": "lstm", "seed": run.seed, "answer": answer,
            "key": key, "question": f"{key}?", "measure": measure, "value": value, "low": 0.1, "high": 2.0,
            "n": 9, "level": level,
        }
        for run, answer in zip(plan.runs, ("yes", "in part"), strict=True)
        for key, level, value in questions
    ]  # fmt: skip
    made = make_result(plan, rows, [])
    assert made.notes == [
        "May the map be shown? The answer is “in part” for 1 run, “yes” for 1 run."
    ]
    assert [*made.summary.heads] == ["run", "answer", "skill", "needed"]
    assert [*made.sections[1].heads] == ["run", "answer", "skill", "needed", "tau gradient"]
    assert made.summary.lines[0][2:] == ["+ 0.900", "~ 1.200"]
    assert f"“skill”: {measure}. “needed”: {measure}. " in made.summary.note
    assert measure not in made.sections[1].note
    shown = page(made)
    places = [shown.index(f'id="{name}"') for name in ("answers", "figures", "tables")]
    assert places == sorted(places)
    assert shown.count("All runs") == shown.count("All numbers") == 1
    titles = [layer["encoding"]["x"].get("title") for layer in made.figures[0].spec["layer"]]
    assert all(len(line) <= 40 for title in titles if isinstance(title, list) for line in title)


def test_a_number_without_an_interval_is_in_brackets_and_in_no_figure():
    plan = Plan.model_validate({"data": ["a"], "encoders": ["lstm", "none"]})
    values = {"needed": (0.0, math.nan), "sufficient": (1.1, 1.0), "fidelity": (math.nan, math.nan)}
    rows = [
        {
            "run": str(run), "data": "a", "model": run.encoder, "seed": 0, "answer": "cannot tell", "key": key,
            "question": f"{key}?", "measure": key, "value": value,
            "low": low if run.encoder == "lstm" else value - 0.1, "high": 2.0, "n": 9, "level": "cannot tell",
        }
        for run in plan.runs
        for key, (value, low) in values.items()
    ]  # fmt: skip
    made = make_result(plan, rows, [])
    assert made.summary.lines[0][2:] == ["? (0.000)", "? 1.100", ""]
    assert made.summary.lines[1][2:] == ["? 0.000", "? 1.100", ""]
    assert [figure.key for figure in made.figures] == ["needed", "sufficient"]
    assert "no value: a lstm" in made.figures[0].notes
    assert "no value: a lstm" not in made.figures[1].notes


@pytest.mark.slow
def test_a_sweep_has_a_page_and_its_folder_is_read_by_the_other_commands(
    heedmap, csv_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID + SMALL)
    dry = heedmap("sweep", "grid.toml", "--dry-run")
    assert dry.code == 0, dry.err
    assert "texts-none-additive-softmax-0: about" in dry.out
    assert "4 runs: about" in dry.out
    assert "GB" in dry.out
    assert not (tmp_path / "runs").exists()
    done = heedmap("sweep", "grid.toml", "--workers", "1")
    assert done.code == 0, done.err
    out = tmp_path / "runs" / "grid"
    page = (out / "result.html").read_text(encoding="utf-8")
    assert 'href="texts-none-additive-sparsemax-1/report.html"' in page
    assert "A sweep of 4 runs" in page
    listed = heedmap("list").out
    assert any(" sweep " in line and "runs/grid" in line for line in listed.splitlines())
    assert "reproduction" not in listed
    assert "skill" in heedmap("figures", out, "--list").out
    compared = heedmap("compare", out, "--out", "compare.html")
    assert compared.code == 0, compared.err
    (tmp_path / "grid.toml").write_text(GRID.replace("[0, 1]", "[0]") + SMALL)
    stopped(heedmap("sweep", "grid.toml"), "other settings", "seeds")


@pytest.mark.exhaustive
def test_shards_of_which_one_lost_a_run_have_the_bytes_of_one_sweep(
    heedmap, csv_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID + SMALL)
    out = tmp_path / "runs" / "grid"
    assert heedmap("sweep", "grid.toml", "--workers", "1").code == 0
    expected = contents(out)
    shutil.rmtree(out)
    for number in (1, 2):
        assert heedmap("sweep", "grid.toml", "--out", out, "--shard", f"{number}/2").code == 0
    shutil.rmtree(out / "texts-none-additive-softmax-0")
    stopped(heedmap("merge", out), "1 of 4 jobs", "texts-none-additive-softmax-0;")
    assert heedmap("sweep", "grid.toml", "--out", out, "--shard", "1/1").code == 0
    assert heedmap("merge", out).code == 0
    assert contents(out) == expected
    assert not jobs_folder(out).exists()


@pytest.mark.slow
def test_views_of_a_transformer_are_swept(heedmap, csv_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_model().save_pretrained(tmp_path / "mine")
    tiny_tokenizer().save_pretrained(tmp_path / "mine")
    # Labelled as the model's outputs are named.
    labelled = csv_file.read_text().replace(",pos", ",class1").replace(",neg", ",class0")
    csv_file.write_text(labelled)
    plan = 'data = ["texts.csv"]\nmodels = ["mine"]\nviews = ["row", "rollout"]\n[audit]\ninstances = 4\n'
    (tmp_path / "views.toml").write_text(plan)
    assert "texts-mine-rollout-0: about" in heedmap("sweep", "views.toml", "--dry-run").out
    done = heedmap("sweep", "views.toml", "--workers", "1")
    assert done.code == 0, done.err
    assert "texts-mine-rollout-0" in done.out
