"""One process writes a trace; another one is refused until that is gone."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import gviz
import gviz.engine as torch
from gviz.errors import GvizError
from gviz.trace.file import lock

ROOT = Path(__file__).parents[2]
WRITER = """
import os, sys
import gviz, gviz.engine as torch

with gviz.record(sys.argv[1], force=True) as recording:
    torch.ones(2) + 1
    recording.flush()
    print(os.getpid(), flush=True)
    input()
"""


@contextmanager
def somebody_writing(path):
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline())
        process.kill()


def program():
    torch.ones(3) * 2


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path):
    path = tmp_path / "run.gviz"
    with somebody_writing(path) as process:
        before = len(gviz.load(path))
        with pytest.raises(GvizError, match=f"run.gviz is being written by process {process}"):
            gviz.record(path, force=True).__enter__()
        assert len(gviz.load(path)) >= before > 0
    with gviz.record(path, force=True):
        program()
    assert lock.writer_of(path) not in (0, process)


def test_the_command_line_refuses_before_the_program_runs(tmp_path):
    path, script = tmp_path / "run.gviz", tmp_path / "script.py"
    script.write_text("print('ran')\n")
    command = [sys.executable, "-m", "gviz", "record", "--force", "-o", str(path), str(script)]
    with somebody_writing(path) as process:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"is being written by process {process}" in done.stderr
    assert "wrote" not in done.stdout + done.stderr
    assert "ran" not in done.stdout


def test_a_recording_of_the_same_process_is_no_exception(tmp_path):
    path = tmp_path / "run.gviz"
    with gviz.record(path):
        program()
        gviz.load(path)
        assert lock.is_locked(path)
        with pytest.raises(GvizError, match="is being written"):
            lock.refuse_locked(path)
    assert not lock.is_locked(path)


def test_who_only_reads_a_trace_keeps_nobody_from_replacing_it(tmp_path):
    path = tmp_path / "run.gviz"
    with gviz.record(path):
        program()
    reader = gviz.load(path)
    nodes = list(reader.nodes)
    with gviz.record(path, force=True):
        program()
        program()
    assert list(reader.nodes) == nodes
    assert len(gviz.load(path).nodes) > len(nodes)


def test_a_file_that_was_replaced_before_it_was_locked_is_not_ours(tmp_path, monkeypatch):
    path, other = tmp_path / "run.gviz", tmp_path / "other.gviz"
    for each in (path, other):
        each.touch()
    monkeypatch.setattr(lock, "_taken", lambda file: bool(other.replace(path)))
    with pytest.raises(GvizError, match="by another process"):
        lock.Lock(path)


def test_a_writer_waits_for_who_only_asks(tmp_path, monkeypatch):
    path = tmp_path / "run.gviz"
    path.touch()
    answers = iter([False, False, True])
    monkeypatch.setattr(lock, "_taken", lambda file: next(answers))
    lock.Lock(path).close()


def test_two_who_ask_do_not_take_each_other_for_a_writer(tmp_path):
    path = tmp_path / "run.gviz"
    path.touch()
    with path.open() as file:
        assert lock._taken(file.fileno(), shared=True)
        assert not lock.is_locked(path)


def test_an_empty_file_is_a_trace_that_was_never_begun(tmp_path):
    path = tmp_path / "run.gviz"
    path.touch()
    with gviz.record(path, force=True):
        program()
    assert len(gviz.load(path))


def test_a_forked_process_that_lives_on_keeps_no_lock(tmp_path):
    path = tmp_path / "run.gviz"
    text = """
import os, sys
import gviz, gviz.engine as torch

there, here = os.pipe()
with gviz.record(sys.argv[1]):
    if os.fork() == 0:
        os.write(here, b".")
        sys.stdin.read()
    os.read(there, 1)
    os._exit(0)
"""
    with subprocess.Popen([sys.executable, "-c", text, str(path)], cwd=ROOT, stdin=subprocess.PIPE) as process:
        process.wait()
        assert not lock.is_locked(path)


def test_a_process_forked_below_python_keeps_no_lock_once_the_recording_is_over(tmp_path):
    path = tmp_path / "run.gviz"
    path.touch()
    own = lock.Lock(path)
    copy = os.dup(own._file)  # what such a process has, and does not close
    assert lock.is_locked(path)
    own.close()
    assert not lock.is_locked(path)
    os.close(copy)


def test_a_file_of_the_program_that_has_the_number_of_the_lock_stays_open(tmp_path):
    path, own = tmp_path / "run.gviz", tmp_path / "own.txt"
    path.touch()
    writing = lock.Lock(path)
    number = writing._file
    os.close(number)
    assert os.open(own, os.O_CREAT | os.O_WRONLY) == number  # the lowest one that is free
    writing.close()
    assert os.path.samestat(os.fstat(number), own.stat())
    os.close(number)
