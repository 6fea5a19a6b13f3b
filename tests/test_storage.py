import errno
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from wording import refused

from heedmap.files.storage import write_atomically
from heedmap.files.tables import padded, read_table, table, write_table


def test_a_file_is_written_and_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_atomically(path, "one")
    write_atomically(path, b"two")
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["a.txt"]


FULL_DISK = """
import resource, sys
from pathlib import Path
from heedmap.errors import InputError
from heedmap.files.storage import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(Path(sys.argv[1]), "x" * 5000)
except InputError as error:
    print(error)
"""


def test_a_write_that_finds_no_room_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert "cannot be written" in done.stdout
    assert "what was there is unchanged" in done.stdout
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    ("code", "advice"), [(errno.ENOSPC, "make room or choose"), (errno.EACCES, "unchanged; choose")]
)
def test_only_who_has_no_room_is_told_to_make_some(tmp_path, monkeypatch, code, advice):
    def refuse(*paths):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", refuse)
    with refused(tmp_path / "a.txt", os.strerror(code), advice):
        write_atomically(tmp_path / "a.txt", "x")


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with refused(tmp_path / "file" / "a.txt", "--out"):
        write_atomically(tmp_path / "file" / "a.txt", "x")


def test_a_folder_that_cannot_be_made_is_named_and_not_the_file_in_it():
    if not os.path.isdir("/proc/self"):
        pytest.skip("there is no folder in which none can be made, not even by root")
    with refused("/proc/none: the folder cannot be made"):
        write_atomically(Path("/proc/none/manifest.json"), "{}")


def test_a_table_comes_back_and_the_same_table_gives_the_same_bytes(tmp_path):
    content = table({"row": range(3), "values": pa.array([[1.0], [], [2.0, 3.0]])})
    write_table(tmp_path / "a.parquet", content)
    write_table(tmp_path / "b.parquet", content)
    assert read_table(tmp_path / "a.parquet").equals(content)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_damaged_table_is_one_clear_line(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1nonsense")
    with refused("a.parquet"):
        read_table(tmp_path / "a.parquet")


def test_lists_are_padded_in_blocks_that_stay_within_the_bound():
    lists = [[1.0] * n for n in (3, 1, 7, 2, 5)]
    column = pa.chunked_array([pa.array(lists)])
    missing = pa.chunked_array([pa.array([None, *lists[1:]])])
    blocks = padded([column, missing], elements=2 * 2 * 9)
    assert sorted(row for rows, _, _ in blocks for row in rows) == [0, 1, 2, 3, 4]
    for rows, values, mask in blocks:
        assert values.shape[1] == 2
        assert len(rows) == 1 or values.numel() * values.shape[-1] <= 36
        assert mask.sum(1).tolist() == [len(lists[i]) for i in rows]
        for i, row in enumerate(rows):
            assert values[i, 0, : len(lists[row])].tolist() == lists[row]
            assert values[i, 1].any() == (row != 0)
