"""Programs that end without Python's own end, or close what is not theirs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gviz.cli.main import run_command
from gviz.events import Marked
from gviz.trace.file.reader import open_trace

ROOT = Path(__file__).parents[2]
BEGIN = "import gviz, os, signal\ngviz.mark('here')\n"
IS_WRITTEN = """
import sqlite3
file = sqlite3.connect("file:t.gviz?mode=ro", uri=True)
while not file.execute("SELECT count(*) FROM event").fetchone()[0]:
    pass
"""


def record(folder, text):
    (folder / "program.py").write_text(BEGIN + text)
    command = [sys.executable, "-m", "gviz", "record", "-o", "t.gviz", "program.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def marks(path):
    with open_trace(path) as log:
        return [event.name for seq in range(1, len(log) + 1) if isinstance(event := log.event(seq), Marked)]


def test_exit_without_cleanup_keeps_what_was_recorded(tmp_path):
    assert record(tmp_path, "os._exit(3)").returncode == 3
    with open_trace(tmp_path / "t.gviz") as log:
        assert [type(log.event(seq)).__name__ for seq in range(1, len(log) + 1)] == ["Marked"]


def test_a_forked_child_that_exits_leaves_the_recording_open(tmp_path):
    text = "child = os.fork()\nif not child: os._exit(0)\nos.waitpid(child, 0)\ngviz.mark('after')\nos._exit(0)"
    assert record(tmp_path, text).returncode == 0
    with open_trace(tmp_path / "t.gviz") as log:
        assert len(log) == 2


@pytest.mark.parametrize(
    "end",
    [
        "os.execv(sys.executable, [sys.executable, '-c', ''])",
        "os.execlp('true', 'true')",
        "os.execve(sys.executable, [sys.executable, '-c', ''], env=os.environ)",
        "os.abort()",
    ],
)
def test_a_program_that_becomes_another_or_aborts_leaves_what_was_recorded(tmp_path, end):
    done = record(tmp_path, f"import sys\n{end}")
    assert marks(tmp_path / "t.gviz") == ["here"]
    assert "warning: the recording broke off" in done.stderr


def test_that_a_recording_broke_off_is_said_of_its_trace(tmp_path, capsys):
    for end, said in (("os.abort()", 1), ("", 0)):
        record(tmp_path, f"import gviz.engine as torch\ntorch.ones(2)\n{end}")
        run_command(["check", str(tmp_path / "t.gviz")])
        assert capsys.readouterr().err.count("not seen: what came after event 2: the recording broke off") == said
        run_command(["show", str(tmp_path / "t.gviz"), "stats"])
        assert capsys.readouterr().out.count("not finished") == said
        (tmp_path / "t.gviz").unlink()


def test_a_program_that_could_not_become_another_is_recorded_on(tmp_path):
    text = "try:\n    os.execv('/no/such', ['x'])\nexcept FileNotFoundError:\n    gviz.mark('after')"
    assert "broke off" not in record(tmp_path, text).stderr
    assert marks(tmp_path / "t.gviz") == ["here", "after"]


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("SIGTERM", "the program was ended by SIGTERM; its last events may be missing\n"),
        ("SIGKILL", "the program was killed; its last events may be missing\n"),
    ],
)
def test_a_kill_is_said(tmp_path, end, says):
    done = record(tmp_path, f"os.kill(os.getpid(), signal.{end})")
    assert says in done.stderr
    assert done.returncode == -signal.Signals[end]


@pytest.mark.parametrize("end", ["signal.SIGTERM", "signal.SIGKILL"])
def test_what_a_kill_leaves_is_one_file(tmp_path, end):
    wait = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {IS_WRITTEN!r}], check=True)\n"
    done = record(tmp_path, f"{wait}os.kill(os.getpid(), {end})")
    assert "wrote t.gviz (1 event," in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", "t.gviz"]
    assert marks(tmp_path / "t.gviz") == ["here"]


def test_what_ends_programs_that_ctrl_c_does_not_end_leaves_gviz_to_tell_of_it(tmp_path):
    """Ctrl-backslash goes to all processes that a terminal has in its foreground."""
    (tmp_path / "program.py").write_text(BEGIN + "os.killpg(os.getpgrp(), signal.SIGQUIT)")
    command = [sys.executable, "-m", "gviz", "record", "-o", "t.gviz", "program.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, process_group=0)
    assert done.returncode == -signal.SIGQUIT
    assert "the program was killed; its last events may be missing\nwrote t.gviz" in done.stderr


def test_a_programs_own_handler_of_sigterm_is_left_alone(tmp_path):
    text = """
def end(number, frame):
    gviz.mark("handled")
    raise SystemExit(5)
assert signal.signal(signal.SIGTERM, end) is signal.SIG_DFL
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = record(tmp_path, text)
    assert (done.returncode, done.stderr.count("SIGTERM")) == (5, 0)
    assert marks(tmp_path / "t.gviz") == ["here", "handled"]


def test_a_forked_child_dies_of_sigterm_and_says_nothing(tmp_path):
    text = """
child = os.fork()
if not child:
    signal.pause()
os.kill(child, signal.SIGTERM)
gviz.mark(str(os.waitpid(child, 0)[1]))
"""
    assert record(tmp_path, text).returncode == 0
    assert marks(tmp_path / "t.gviz") == ["here", str(int(signal.SIGTERM))]


def test_workers_that_are_ended_as_soon_as_they_are_started_end(tmp_path):
    text = """
import multiprocessing
context = multiprocessing.get_context("fork")
for _ in range(20):
    worker = context.Process(target=signal.pause)
    worker.start()
    worker.terminate()
    worker.join(60)
    if worker.exitcode != -signal.SIGTERM:
        worker.kill()
        raise SystemExit(f"a worker is {worker}")
"""
    done = record(tmp_path, text)
    assert (done.returncode, done.stderr.count("a worker")) == (0, 0)


def test_a_program_that_is_stuck_in_c_ends_of_sigterm_as_without_gviz(tmp_path):
    text = """
import ctypes, threading
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
threading.Timer(30, os.kill, (os.getpid(), signal.SIGKILL)).start()
lock(mutex)
lock(mutex)  # no signal interrupts this
"""
    assert record(tmp_path, text).returncode == -signal.SIGTERM


def test_closed_files_are_named_as_the_cause(tmp_path):
    done = record(tmp_path, "os.closerange(3, 256)\ngviz.mark('lost')\nprint('on')")
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert "the program closed files that it had not opened" in done.stderr
    assert "lock" not in done.stderr


def test_a_recording_that_ended_with_the_programs_files_is_called_broken_off(tmp_path):
    done = record(tmp_path, "os.closerange(0, 256)")
    assert "warning: the recording broke off; what the program did afterwards is not in it" in done.stderr


def test_a_recording_with_an_end_is_not(tmp_path):
    said = record(tmp_path, "gviz.mark('there')").stderr
    assert "wrote" in said
    assert "broke off" not in said
