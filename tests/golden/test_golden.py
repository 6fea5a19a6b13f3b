"""Every number and decision of tiny audits is as it was recorded, but for the changes that are listed."""

from pathlib import Path

import pytest
from golden.quick import RECORDS
from golden.record import Changes, read_record

HERE = Path(__file__).parent
CHANGES = Changes.read(HERE / "changes.toml")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RECORDS)
def test_numbers_decisions_and_sentences_are_as_recorded(name, tmp_path):
    for kind, made in zip(("values", "sentences"), RECORDS[name](tmp_path), strict=True):
        found = CHANGES.differences(name, read_record(HERE / kind / f"{name}.json"), made)
        lines = [f"{len(found)} differences from {kind}/{name}.json:", *found[:20]]
        assert not found, "\n".join(lines)


def test_every_listed_change_is_about_a_recorded_value():
    records = {
        name: read_record(HERE / "values" / f"{name}.json")
        | read_record(HERE / "sentences" / f"{name}.json")
        for name in RECORDS
    }
    assert CHANGES.unneeded(records) == []


OLD = {"a": [1.0, None, "x"], "b": [1, 2], "c": [0.5]}


@pytest.mark.parametrize(
    ("new", "listed", "found"),
    [
        (OLD, {}, []),
        ({**OLD, "a": [1.000004, None, "x"]}, {}, []),
        ({**OLD, "a": [1.001, None, "x"]}, {}, ["a: row 0: 1.0, now 1.001"]),
        ({**OLD, "a": [1.0, 0.0, "x"]}, {}, ["a: row 1: None, now 0.0"]),
        ({**OLD, "b": [1, 3]}, {}, ["b: row 1: 2, now 3"]),
        ({**OLD, "b": [1]}, {}, ["b: 2 values, now 1"]),
        ({**OLD, "b": [True, 2]}, {}, ["b: row 0: 1, now True"]),
        ({**OLD, "d": [0]}, {}, ["d: is new"]),
        ({"a": OLD["a"], "b": OLD["b"]}, {}, ["c: is gone"]),
        (
            {"a": OLD["a"], "b": OLD["b"]},
            {"removed": [{"keys": "c*", "because": "nobody reads it"}]},
            [],
        ),
        (OLD, {"removed": [{"keys": "c", "because": "-"}]}, ["c: listed as removed, and is there"]),
        (
            {"a": OLD["a"], "b": OLD["b"], "d": [0.5]},
            {"renamed": [{"old": "c", "new": "d"}]},
            [],
        ),
        (
            {**OLD, "c": [0.7]},
            {"changed": [{"key": "c", "old": [0.5], "new": [0.7], "because": "-"}]},
            [],
        ),
        (
            {**OLD, "c": [0.8]},
            {"changed": [{"key": "c", "old": [0.5], "new": [0.7], "because": "-"}]},
            ["c: row 0: 0.7, now 0.8"],
        ),
    ],
)
def test_a_difference_is_found_unless_it_is_listed(new, listed, found):
    assert Changes(listed).differences("one", OLD, new) == found


def test_a_change_that_nothing_has_and_one_without_a_reason_are_told():
    changes = Changes({"removed": [{"keys": "z", "because": "-"}]})
    assert changes.unneeded({"one": OLD}) == ["z: no record has it"]
    with pytest.raises(ValueError, match="because"):
        Changes({"removed": [{"keys": "z"}]})
