"""The storage protocol, killed at every file operation: nothing is torn, unlisted or lost, and it can go on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def protocol(tmp_path_factory):
    """What `protocol_kills.py` found."""
    if not hasattr(os, "fork"):
        pytest.skip("each kill is that of a fork")
    program, root = Path(__file__).with_name("protocol_kills.py"), tmp_path_factory.mktemp("kills")
    done = subprocess.run(
        [sys.executable, program, root / "root"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_work_that_is_killed_at_any_file_operation_leaves_whole_listed_files_and_goes_on(protocol):
    assert {name: one["wrong"] for name, one in protocol["work"].items() if one["wrong"]} == {}
    for name, one in protocol["work"].items():
        assert one["kills"] == one["operations"] >= 5, name


def test_at_every_file_operation_another_writer_is_refused(protocol):
    for name, one in protocol["work"].items():
        assert one["refused"] == one["held"] >= 4, name


def test_the_protocol_needs_no_torch(protocol):
    assert not protocol["torch"]
