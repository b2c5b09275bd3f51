"""Program and debugger, each killed at arbitrary moments: no corrupt trace, no orphan."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driving_live import PATIENCE, Driver, is_collected

from gviz.live.debugger_side import Ended
from gviz.live.protocol import ResumeRequest
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline

ROOT = Path(__file__).parents[2]
TRAINING = """\
import gviz.engine as torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
while True:
    (w * w).sum().backward()
"""
DEBUGGER = """\
import sys, queue
sys.path[:0] = {path!r}
from driving_live import Driver
from gviz.live.protocol import ResumeRequest
driver = Driver({folder!r}, {program!r})
print(driver.session.pid, flush=True)
{goes_on}
"""
RUNS = 'while True: driver.run("next", count=7)'
HOLDS = 'driver.run("next", count=7); sys.stdin.read()'
MOMENTS = [random.Random(seed).random() * 0.4 for seed in range(int(os.environ.get("GVIZ_KILLS", "4")))]


def debugging(folder, goes_on):
    """A debugger in a process of its own, which says the process of its program."""
    path = [str(ROOT), str(Path(__file__).parent)]
    text = DEBUGGER.format(path=path, folder=str(folder), program=TRAINING, goes_on=goes_on)
    return subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("seconds", MOMENTS)
def test_a_killed_program_leaves_what_it_did(tmp_path, seconds):
    driver = Driver(tmp_path, TRAINING)
    driver.session.go(ResumeRequest("run"))
    time.sleep(seconds)  # the moment is what is tested: any will do
    os.kill(driver.session.pid, signal.SIGKILL)
    assert driver.end() == Ended(-signal.SIGKILL)
    assert_whole(driver.trace)


@pytest.mark.parametrize("seconds", MOMENTS)
def test_a_killed_debugger_leaves_no_program_behind(tmp_path, seconds):
    debugger = debugging(tmp_path, RUNS)
    with debugger, debugger.stdout as said:
        program = int(said.readline())
        time.sleep(seconds)
        debugger.kill()
    assert_gone(program)
    assert_whole(tmp_path / "trace.gviz")


def test_a_killed_debugger_leaves_one_file_of_a_program_that_it_held(tmp_path):
    debugger = debugging(tmp_path, HOLDS)
    log = tmp_path / "trace.gviz-wal"
    with debugger, debugger.stdout as said:
        program = int(said.readline())
        wait_until(lambda: log.exists() and log.stat().st_size)
        debugger.kill()
    assert_gone(program)
    assert [path.name for path in tmp_path.glob("trace.gviz*")] == ["trace.gviz"]
    assert_whole(tmp_path / "trace.gviz")


def assert_gone(program):
    wait_until(lambda: is_collected(program))


def wait_until(happened):
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def assert_whole(trace):
    """The trace can be read to its last event, and its numbers follow each other."""
    with open_trace(trace) as log:
        timeline = Timeline(log)
        assert len(timeline) == len(log)
        for n in range(1, len(log) + 1):
            assert log.event(n) is not None
        assert timeline.at(len(log)).n == len(log)
