"""What a command needs for itself is gone when it ends, and after a kill when the next one begins."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from gviz.system.scratch import scratch_folder

LEFT = "gviz-scratch-left"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def made(folder, age=3600.0):
    folder.mkdir()
    (folder / "program.gviz").write_text("")
    os.utime(folder, times=(time.time() - age,) * 2)
    return folder


def test_it_is_gone_afterwards(temporary):
    with scratch_folder() as folder:
        (folder / "program.gviz").write_text("")
    assert [*temporary.iterdir()] == []


def test_what_a_killed_process_has_left_is_removed(temporary):
    code = (
        "import os\nfrom gviz.system.scratch import scratch_folder\nwith scratch_folder() as f: os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(temporary)})
    [left] = temporary.iterdir()
    assert killed.returncode == -signal.SIGKILL
    os.utime(left, times=(0, 0))
    with scratch_folder() as folder:
        assert [*temporary.iterdir()] == [folder]


def test_what_somebody_has_still_is_left_alone():
    with scratch_folder() as theirs:
        os.utime(theirs, times=(0, 0))
        with scratch_folder():
            assert theirs.exists()


def test_what_has_only_begun_is_left_alone(temporary):
    young = made(temporary / LEFT, age=0)
    with scratch_folder():
        assert young.exists()


@pytest.mark.parametrize("name", ["gviz-results", "gviz-scratch"])
def test_folders_that_are_called_otherwise_are_left_alone(temporary, name):
    kept = made(temporary / name)
    with scratch_folder():
        assert (kept / "program.gviz").exists()


def test_neither_a_link_nor_what_it_names_is_removed(temporary):
    target = made(temporary / "results")
    (temporary / LEFT).symlink_to(target)
    os.utime(temporary / LEFT, times=(0, 0), follow_symlinks=False)
    with scratch_folder():
        assert (temporary / LEFT / "program.gviz").exists()


def test_what_belongs_to_somebody_else_is_left_alone(temporary, monkeypatch):
    theirs = made(temporary / LEFT)
    monkeypatch.setattr(os, "getuid", lambda: theirs.stat().st_uid + 1)
    with scratch_folder():
        assert theirs.exists()
