"""Drozdyuk et al.'s small and larger transformer: their settings, one folder of both, and one table of both."""

from pathlib import Path

import pytest
from conftest import contents, small_corpus
from scipy import stats

import heedmap.papers.drozdyuk.paper as paper
from heedmap.papers.drozdyuk.comparison import CLAIMS, MEASURES, comparison
from heedmap.papers.drozdyuk.forecast import cell_seconds
from heedmap.papers.drozdyuk.paper import cells, reproduce
from heedmap.papers.drozdyuk.published import intervention_of
from heedmap.papers.drozdyuk.reproduction import Drozdyuk
from heedmap.papers.drozdyuk.result import result
from heedmap.papers.drozdyuk.settings import LARGER_DATA, DrozdyukSettings
from heedmap.papers.kit.result import MARK

BOTH = ("small", "larger")
TINY = {
    "size": 8, "heads": 2, "layers": 1, "feed_forward": 8, "epochs": 1, "adversary_epochs": 1,
    "adversary_hidden": 8, "batch_size": 16, "seeds": 1, "activations": ("softmax", "entmax15"),
    "dataset": "imdb",
    "transformers": BOTH,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus():
    return small_corpus()


def settings_of(corpus, **options):
    return DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **{**TINY, **options}
    )


@pytest.fixture(scope="module")
def done(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes") / "run"
    return reproduce(corpus, out=folder, workers=1, **TINY)


def test_the_larger_transformer_has_four_layers_of_width_256(corpus):
    settings = DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **LARGER_DATA
    )
    larger = settings.of_transformer("larger")
    assert (larger.layers, larger.size, larger.feed_forward) == (4, 256, 1024)
    assert (larger.train_texts, larger.seeds, larger.max_length) == (5000, 3, 128 + 2)
    assert settings.of_transformer("small") == settings
    kept = larger.model_copy(update={"layers": 2, "size": 128, "feed_forward": 512})
    assert kept == settings


def test_all_classifiers_of_a_seed_come_before_the_next(corpus):
    names = [str(cell) for cell in cells(settings_of(corpus, seeds=2))]
    first = ["softmax-0", "entmax15-0", "larger-softmax-0", "larger-entmax15-0"]
    assert names == [*first, *(name.replace("-0", "-1") for name in first)]


def test_both_sizes_stand_in_one_folder(done):
    layers = {
        size: {row["layers"] for row in done.rows if row["model"] == size} - {"all"}
        for size in BOTH
    }
    assert layers == {"small": set(), "larger": {"0", "1"}}
    assert done.missing == 0
    again = paper.read(done.folder)
    assert (again.rows, again.missing) == (done.rows, 0)
    csv = (done.folder / "result.csv").read_text()
    assert csv.count("\n") == len(done.rows) + 1


def test_the_page_has_every_table_claim_and_figure_of_both(done, heedmap, tmp_path):
    made = result(done)
    assert made.summary.title == "All trainings in one table"
    titles = [part.title for part in made.sections if hasattr(part, "title")]
    for size in BOTH:
        assert f"Table 1 [S4] beside ours, {size} transformer" in titles
        assert f"Every intervention, {size} transformer" in titles
    # The small one of these tests has a single layer, so that nothing is said of the first.
    assert [claim.text.split(", ")[-1] for claim in made.claims] == [
        *["small transformer"] * 5, *["larger transformer"] * 6,
    ]  # fmt: skip
    listed = heedmap("figures", done.folder, "--list")
    keys = [line.split()[0] for line in listed.out.splitlines()]
    assert len(set(keys)) == len(keys)
    assert {f"drop-{size}" for size in BOTH} < {*keys}
    assert {f"texts-opposite-{size}" for size in BOTH} < {*keys}
    assert keys.count("activations") == 1
    assert {claim.text for part in done.by_transformer.values() for claim in part.claims} == {
        *CLAIMS
    }
    failed = [f"{size} {a}" for size in BOTH for a in TINY["activations"]]
    assert [*done.learned.failed] == failed
    notes = {figure.key: figure.notes[-1] for figure in made.figures}
    assert notes["drop-larger"] == "not learned: softmax, entmax15"
    assert "not learned" not in notes["activations"]


def test_a_run_that_stopped_between_the_sizes_shows_one_and_resumes(
    done, corpus, tmp_path, monkeypatch
):
    original, calls = paper.compute, []

    def stop_at_the_third(cell, checkpoints, *, shared):
        calls.append(str(cell))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(cell, checkpoints, shared=shared)

    monkeypatch.setattr(paper, "compute", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        reproduce(corpus, out=tmp_path / "run", workers=1, **TINY)
    text = (tmp_path / "run" / "result.md").read_text()
    assert "Not finished: 2 models are still to be run." in text
    assert "larger transformer" not in text
    assert "small transformer" in text
    reproduce(corpus, out=tmp_path / "run", workers=1, **TINY)
    assert calls[2:] == ["larger-softmax-0", "larger-softmax-0", "larger-entmax15-0"]
    assert contents(tmp_path / "run") == contents(done.folder)


NAMES = {intervention_of(change, a) for _, _, change in MEASURES for a in ("softmax", "sparsemax")}
NAMES |= {"activation:entmax15", "matched:softmax", "matched:entmax15", "opposite_random_k"}


def made_up(drops, seeds):
    """Rows of made-up trainings of both sizes, whose drops are given by size and activation."""
    return [
        {"model": size, "activation": a, "seed": s, "intervention": name, "layers": "all",
         "accuracy": 0.5 if name == "majority" else 0.85, "drop": drop + 0.01 * s,
         "weights_tvd": 0.5, "opposite_accuracy": 0.5, "flipped": 0.8 + 0.01 * s, "key_distance": 2.0,
         "kept": 0.9, "n": 2000}
        for (size, a), drop in drops.items() for s in range(seeds) for name in sorted(NAMES)
    ]  # fmt: skip


DROPS = {
    ("small", "softmax"): 0.1, ("small", "entmax15"): 0.4, ("small", "sparsemax"): 0.2,
    ("larger", "softmax"): 0.3, ("larger", "entmax15"): 0.2,
}  # fmt: skip


def table_of(corpus, rows, seeds=3):
    settings = settings_of(corpus, seeds=seeds, activations=("softmax", "entmax15", "sparsemax"))
    return comparison(Drozdyuk("d", settings, [], Path(), rows).by_transformer)


def test_a_column_has_the_mean_and_students_interval_of_its_own_trainings(corpus):
    table = table_of(corpus, made_up(DROPS, 3))
    assert table.heads == ["measure", *(f"{size} {a}" for size, a in DROPS)]
    lines = {line[0]: dict(zip(DROPS, line[1:], strict=True)) for line in table.lines}
    assert set(lines["trainings"].values()) == {"3"}
    for measure in ("drop under shuffling", "drop under random-K", "drop under uniform attention"):
        for model, drop in DROPS.items():
            values = [drop + 0.01 * seed for seed in range(3)]
            low, high = stats.t.interval(0.95, 2, drop + 0.01, stats.sem(values))
            expected = f"{100 * drop + 1:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            assert lines[measure][model] == expected
    verdicts = dict(zip(DROPS, ("survives", "survives", "–", "does not", "does not"), strict=True))
    assert lines["claim: entmax loses twice as much"] == verdicts


def test_intervals_end_where_the_numbers_do_and_one_training_has_none(corpus):
    rows = made_up({("small", "softmax"): 0.0, ("larger", "softmax"): 0.1}, 2)
    rows = [row for row in rows if row["model"] == "small" or row["seed"] == 0]
    for row in rows:
        row["accuracy"], row["drop"] = 0.98 + 0.02 * row["seed"], 2.0 * row["seed"] - 1
    lines = {line[0]: line[1:] for line in table_of(corpus, rows, 2).lines}
    assert lines["trainings"] == ["2", "1"]
    assert lines["accuracy"] == ["99.0 [86.3, 100.0]", "98.0"]
    assert lines["drop under shuffling"] == ["0.0 [-100.0, 100.0]", "-100.0"]


def test_a_size_that_has_not_learned_is_marked_alone(corpus):
    rows = made_up(DROPS, 2)
    for row in rows:
        if row["model"] == "larger":
            row["accuracy"] = 0.5
    table = table_of(corpus, rows, 2)
    assert [MARK in head for head in table.heads] == [False] * 4 + [True] * 2


def test_the_forecast_has_a_number_per_cell(corpus):
    settings = settings_of(corpus, seeds=2, activations=("softmax",))
    seconds = cell_seconds(corpus, settings)
    assert len(seconds) == len(cells(settings)) == 4
    assert min(seconds) > 0


def test_a_size_that_there_is_not_and_a_size_beside_a_trained_model_are_refused(
    heedmap, csv_file, tmp_path
):
    for options in (
        ("--transformer", "huge"), ("--transformer", "larger", "--model", "x"),
        ("--transformer", "small,small"), ("--transformer", ","),
    ):  # fmt: skip
        wrong = heedmap(
            "reproduce", "drozdyuk", "--data", csv_file, "--out", tmp_path / "a", *options
        )
        assert (wrong.code, wrong.err.count("\n")) == (2, 1), wrong.err
        assert "transformers" in wrong.err
    assert not (tmp_path / "a").exists()
