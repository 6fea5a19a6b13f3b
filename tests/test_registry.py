"""An experiment of another package is run, reported and drawn like ours."""

import json
import sys
from pathlib import Path

import pytest

from heedmap.errors import InputError
from heedmap.experiments import summaries
from heedmap.experiments.registry import registered, retrains

TOY = Path(__file__).parent / "toy" / "last_word.py"
SMALL = ("--epochs", 1, "--encoder", "average", "--instances", 20, "--permutations", 5)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a module of experiments as a package would be, for this test."""

    def installed(entry, text):
        place = tmp_path / "site"
        about = place / "last_word-1.0.dist-info"
        about.mkdir(parents=True)
        (place / "last_word.py").write_text(text)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: last-word\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[heedmap.experiments]\nlast_word = {entry}\n")
        monkeypatch.syspath_prepend(place)
        registered.cache_clear()

    yield installed
    registered.cache_clear()
    sys.modules.pop("last_word", None)


def test_ours_stand_in_the_order_of_the_card():
    names = list(registered())
    assert names[:4] == ["instances", "highlights", "gradient", "leave_one_out"]
    trained = [name for name in names if retrains(name)]
    assert names[-5 - len(trained) :] == [
        "scan",
        "head_mixture",
        "better_maps",
        "heads",
        "dynamics",
        *trained,
    ]
    places = [experiment.place for experiment in registered().values()]
    assert places == sorted(set(places))


def test_every_module_of_experiments_says_what_it_asks():
    found = summaries()
    assert {"adversary", "agreement", "permutation", "scan"} <= set(found)
    assert "evidence" not in found
    for name, question in found.items():
        assert "?" in question, name


def test_an_experiment_costs_its_author_few_lines():
    assert len(TOY.read_text().splitlines()) < 40


@pytest.mark.slow
def test_another_packages_experiment_is_on_the_card_the_page_and_among_the_figures(
    install, heedmap, csv_file, tmp_path
):
    install("last_word:EXPERIMENT", TOY.read_text())
    run = tmp_path / "run"
    done = heedmap("audit", "--data", csv_file, "--out", run, *SMALL)
    assert done.code == 0, done.err
    assert "Is the last word on its own?" in heedmap("report", run).out
    keys = [one["key"] for one in json.loads((run / "findings.json").read_text())["findings"]]
    assert keys[-1] == "last_word"
    page = (run / "report.html").read_text()
    assert "Is the last word on its own?" in page
    assert "The last word" in page
    assert "weight of the last word" in page
    assert (run / "tables" / "last_word.parquet").exists()
    assert "last-word" in heedmap("figures", run, "--list").out
    assert heedmap("figures", run, "--only", "last-word", "--format", "svg").code == 0
    assert (run / "figures" / "last-word.svg").exists()
    assert "of the package last_word" in heedmap("audit", "--help").out
    # Without the package the run is read as it is; its question is left out.
    sys.path.remove(str(tmp_path / "site"))
    registered.cache_clear()
    again = heedmap("report", run)
    assert again.code == 0, again.err
    assert "Is the last word on its own?" not in again.out
    assert "Does attention rank the words" in again.out


@pytest.mark.parametrize(
    ("entry", "text", "message"),
    [
        ("last_word:EXPERIMENT", "1 / 0", "cannot be loaded (ZeroDivisionError"),
        ("last_word:NONE", "", "cannot be loaded (AttributeError"),
        ("last_word:EXPERIMENT", "EXPERIMENT = 1", "expected an Experiment, got int"),
        (
            "last_word:EXPERIMENT",
            "from heedmap.experiments.registry import Experiment\n"
            "EXPERIMENT = Experiment('scan', None)",
            "the name 'scan' is taken",
        ),
    ],
)
def test_an_entry_point_that_is_none_is_one_clear_line(install, entry, text, message):
    install(entry, text)
    with pytest.raises(InputError) as error:
        registered()
    assert message in str(error.value)
    assert "mend or uninstall it" in str(error.value) or "rename or uninstall it" in str(
        error.value
    )
    assert "\n" not in str(error.value)
