"""A calibration: plants are asked once, and what was asked is kept, resumed and never replaced by less."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from conftest import contents
from made_rates import rates
from wording import refused, warned

from heedmap.calibration import bags, pair_transformers, pictures
from heedmap.calibration.calibrate import PAGE, calibrate, calibrate_kinds
from heedmap.calibration.choice import known
from heedmap.calibration.families import FIRST_SEED, draw, families, plants
from heedmap.calibration.measure import OTHER_MAPS, Measured, measure, read_measured
from heedmap.calibration.page import families_text, with_later_kinds_on
from heedmap.calibration.planted_bags import BY_HAND
from heedmap.calibration.planted_pair_transformers import BY_HAND as PAIRS_BY_HAND
from heedmap.calibration.plants import PICTURES_BY_HAND
from heedmap.experiments.methods.rereading import WHAT
from heedmap.experiments.rates import ALL, FILE, RULES, read_rates
from heedmap.experiments.rule import Thresholds, answer

SMALL = ("weights by value", "evidence everywhere, equal")  # all of their plants are set by hand


def plant(family="weights by value", seed=FIRST_SEED, encoder="by hand", **changed):
    drawn = draw(families()[family], encoder, seed)
    return replace(drawn, **{"classes": 2, "texts": 40, "length": 12, **changed})


# --- one plant --------------------------------------------------------------------------------------------


def test_a_plants_numbers_are_kept_and_read_again(tmp_path):
    first = measure(plant(), tmp_path)
    assert first.admitted
    assert first.texts.num_rows == 40
    (path,) = tmp_path.iterdir()
    written = path.stat().st_mtime_ns
    again = measure(plant(), tmp_path)
    assert path.stat().st_mtime_ns == written, "made again"
    assert again.plant == first.plant
    assert again.texts.equals(first.texts)


def test_a_plant_of_other_settings_is_not_taken_for_the_one_that_was_kept(tmp_path):
    measure(plant(), tmp_path)
    other = measure(plant(texts=50), tmp_path)
    assert other.texts.num_rows == 50


def test_a_damaged_file_of_numbers_is_made_again(tmp_path):
    first = measure(plant(), tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", b"{", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        assert read_measured(path) is None
        assert measure(plant(), tmp_path).texts.equals(first.texts)
        assert path.read_bytes() == whole


def test_of_a_plant_that_is_not_what_it_should_be_there_are_no_numbers(tmp_path):
    refused = measure(plant("cue attended", sharpness=0.5), tmp_path)
    assert not refused.admitted
    assert refused.texts.num_columns == 0
    (path,) = tmp_path.iterdir()
    assert read_measured(path).why_not == refused.why_not != ""


def test_every_text_has_what_the_rule_reads_and_the_same_of_maps_that_are_wrong(tmp_path):
    texts = measure(plant(), tmp_path).texts
    for name in ("highlighted", *WHAT):
        for of in (*OTHER_MAPS, *(() if name == "highlighted" else ("map", "random"))):
            assert f"{name}_{of}" in texts.column_names
    gone = {of: np.nanmean(texts[f"gone_{of}"].to_numpy()) for of in ("map", *OTHER_MAPS)}
    assert gone["map"] > 2 * max(gone[of] for of in OTHER_MAPS)


@pytest.mark.parametrize(
    ("family", "encoder", "said"),
    [
        ("cue attended", "by hand", {"yes"}),
        ("weights by value", "by hand", {"yes"}),
        ("transformer, cue attended", "transformer by hand", {"yes"}),
        ("random words attended", "by hand", {"no"}),
        ("word behind the cue attended", "by hand", {"no"}),
        ("all words but the cue attended", "by hand", {"no"}),
        ("uniform weights", "by hand", {"no"}),
        pytest.param(
            *("transformer, uniform weights", "transformer by hand", {"no"}),
            marks=pytest.mark.exhaustive,
        ),
        ("evidence everywhere, equal", "by hand", {"no"}),
        ("words matter, weights do not", "by hand", {"words"}),
        ("a minority missed", "by hand", {"in part"}),
    ],
)
def test_the_rule_is_right_about_plants_whose_answer_is_plain(tmp_path, family, encoder, said):
    easy = {"margin": 6.0, "noise": 0.0, "deciding": 1, "texts": 100, "length": 16}
    if family != "words matter, weights do not":
        easy["sharpness"] = 5.0
    measured = measure(plant(family, encoder=encoder, **easy), tmp_path)
    (one,) = known([measured])
    assert one.truth == families()[family].truth
    assert answer(one.numbers, Thresholds()) in said


def test_plants_that_are_not_admitted_are_not_counted(tmp_path):
    asked = measure(plant(), tmp_path)
    out = Measured(replace(plant(), seed=1), False, "on no cues", pa.table({}))
    (one,) = known([out, asked, out])
    assert one.plant == asked.plant
    assert one.truth == "right"


def read_bags(folder):
    numbers = [read_measured(path) for path in (folder / "numbers").rglob("*.parquet")]
    return [one for one in numbers if one.plant.family in BAGS]


# --- all of them ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a small calibration, its rates, and what it warned of."""
    out = tmp_path_factory.mktemp("calibration") / "small"
    with warned("4 planted models", "--seeds") as notes:
        made = calibrate(out, families=SMALL, seeds=1, workers=1, progress=False)
    return out, made, [str(note.message) for note in notes]


def test_a_calibration_writes_the_rates_that_it_returns_and_what_they_are_made_of(finished):
    out, made, warned = finished
    assert read_rates(out / FILE) == made
    assert made.rules == RULES
    assert (made.data, made.name) == (None, "synthetic texts")
    cells = plants(1, names=SMALL)
    kept = [read_measured(path) for path in sorted((out / "numbers").rglob("*.parquet"))]
    assert {one.plant for one in kept} == {*cells}
    assert made.plants == sum(one.admitted for one in kept)
    answers = made.kinds[ALL].families
    assert {name: of.truth for name, of in answers.items()} == {
        name: families()[name].truth for name in SMALL
    }
    assert sum(of.answers.n for of in answers.values()) == made.plants
    assert len(warned) == 1
    assert f"{made.plants} planted models" in warned[0]


def test_the_page_lays_out_every_family_and_the_answers_about_those_that_were_planted(finished):
    out, made, _ = finished
    page = (out / PAGE).read_text()
    assert page.startswith(families_text())
    answers, chosen = page.split("## Answers by family")[1].split("## Thresholds")
    for name in families():
        assert (f"| {name} |" in answers) == (name in SMALL), name
    for name, value in made.thresholds.model_dump().items():
        assert re.search(rf"^\| {name} \| .* \| {value:g} \|$", chosen, re.M)


@pytest.mark.filterwarnings("ignore:.*too few to choose thresholds")
def test_a_stopped_calibration_goes_on_and_a_finished_one_is_made_of_the_same_bytes(finished):
    out, made, _ = finished
    whole = contents(out)
    kept, *others = sorted((out / "numbers").rglob("*.parquet"))
    before = kept.stat().st_mtime_ns
    others[0].unlink()
    (out / FILE).unlink()
    again = calibrate(str(out), families=SMALL, seeds=1, workers=1, progress=False)
    assert kept.stat().st_mtime_ns == before, "made again"
    assert again == made
    assert contents(out) == whole


BAGS = ("bags, uniform weights", "bags, deciding items attended, saturated")
PICTURES = ("pictures, evidence everywhere, equal", "pictures, weights by value")
PAIRS = ("pair transformer, uniform weights",)
OF_LATER = {
    "bags": (bags, BY_HAND, BAGS),
    "pictures": (pictures, PICTURES_BY_HAND, PICTURES),
    "transformer of pairs": (pair_transformers, PAIRS_BY_HAND, PAIRS),
}


@pytest.fixture
def few_families(monkeypatch):
    """Some families of each kind that chose no threshold, of models that are set by hand."""
    for module, encoder, names in OF_LATER.values():
        few = tuple(
            replace(family, makers={encoder: family.makers[encoder]})
            for family in module.FAMILIES
            if family.name in names
        )
        monkeypatch.setattr(module, "FAMILIES", few)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("few_families")
def test_kinds_are_measured_alone_and_change_no_other_number(finished, tmp_path):
    out, made, _ = finished
    rates, measured = calibrate_kinds(
        tmp_path, made, kinds=[*OF_LATER], seeds=2, workers=1, progress=False
    )
    assert {kind for kind in rates.kinds if kind not in made.kinds} == {*OF_LATER}
    assert rates.kinds["bags"].of("wrong").rate("no").count == 2
    assert rates.model_copy(update={"kinds": made.kinds}) == made
    before = (out / PAGE).read_text()
    page = with_later_kinds_on(before, rates, measured)
    assert page.startswith(families_text())
    kept, *sections = page.split("## Counted on its own: ")
    assert kept.removeprefix(families_text()).strip() in before
    for section, (kind, (_, _, names)) in zip(sections, OF_LATER.items(), strict=True):
        assert section.startswith(f"{kind}\n\nOf {2 * len(names)} plants")
        assert all(f"| {name} |" in section for name in names)
    assert with_later_kinds_on(page, rates, measured) == page


@pytest.mark.exhaustive
@pytest.mark.usefixtures("few_families")
def test_of_kinds_that_are_not_measured_rates_and_page_stay(finished, tmp_path):
    out, made, _ = finished

    def add(rates, page, kind, seeds):
        folder = tmp_path / kind / str(seeds)
        one = calibrate_kinds(folder, rates, kinds=[kind], seeds=seeds, workers=1, progress=False)
        return one[0], with_later_kinds_on(page, *one)

    with_bags = add(made, (out / PAGE).read_text(), "bags", 1)
    assert {*with_bags[0].kinds} == {*made.kinds, "bags"}
    both = add(*with_bags, "pictures", 1)
    assert both[0].kinds["bags"] == with_bags[0].kinds["bags"]
    assert both == add(*add(made, (out / PAGE).read_text(), "pictures", 1), "bags", 1)
    again = add(*both, "bags", 2)
    assert again[0].kinds["pictures"] == both[0].kinds["pictures"]
    assert again[0].kinds["bags"] != both[0].kinds["bags"]
    of_pictures = both[1].partition("its own: pictures")[2]
    assert again[1].partition("its own: pictures")[2] == of_pictures


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*too few to choose thresholds")
@pytest.mark.usefixtures("few_families")
def test_a_calibration_with_bags_counts_them_on_their_own(tmp_path, finished):
    out, made, _ = finished
    whole = calibrate(tmp_path, families=(*SMALL, *BAGS), seeds=1, workers=1, progress=False)
    assert whole.model_copy(update={"kinds": made.kinds}) == made
    page = (tmp_path / PAGE).read_text()
    assert page == with_later_kinds_on((out / PAGE).read_text(), whole, read_bags(tmp_path))


def test_a_calibration_replaces_no_larger_one(tmp_path):
    (tmp_path / "large").mkdir()
    path = tmp_path / "large" / FILE
    path.write_text(rates().to_json())
    before = contents(tmp_path)
    with refused(tmp_path / "large", "100 planted models", "4", "--seeds", "--out"):
        calibrate(tmp_path / "large", families=SMALL, seeds=1, progress=False)
    assert path.read_bytes() == before[path.relative_to(tmp_path)]


def test_a_calibration_shares_no_folder_with_a_run(tmp_path):
    (tmp_path / "settings.toml").write_text("")
    with refused(tmp_path, "a run"):
        calibrate(tmp_path, families=SMALL, seeds=1, progress=False)
    assert not (tmp_path / "numbers").exists()


def test_files_that_heedmap_did_not_write_are_not_replaced(tmp_path):
    (tmp_path / PAGE).write_text("my notes")
    with refused(tmp_path / PAGE, "a file"):
        calibrate(tmp_path, families=SMALL, seeds=1, progress=False)
    assert (tmp_path / PAGE).read_text() == "my notes"


def test_bags_alone_choose_no_thresholds(tmp_path):
    with refused("bags, uniform weights", "calibrate_kinds"):
        calibrate(tmp_path / "out", families=("bags, uniform weights",), progress=False)
    assert not (tmp_path / "out").exists()


def test_an_unknown_family_is_refused_before_anything_is_written(tmp_path):
    with refused("'none such'"):
        calibrate(tmp_path / "out", families=("weights by value", "none such"), progress=False)
    assert not (tmp_path / "out").exists()
