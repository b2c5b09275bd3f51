"""Program and debugger, each killed at arbitrary moments: no corrupt trace, no orphan."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driving_live import PATIENCE, Driver, is_gone

from gviz.live.controlled import Ended
from gviz.live.protocol import Wish
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
from gviz.live.protocol import Wish
driver = Driver({folder!r}, {program!r})
print(driver.session.pid, flush=True)
while True:
    driver.run("next", count=7)
"""
MOMENTS = [random.Random(seed).random() * 0.4 for seed in range(int(os.environ.get("GVIZ_KILLS", "4")))]


@pytest.mark.parametrize("seconds", MOMENTS)
def test_a_killed_program_leaves_what_it_did(tmp_path, seconds):
    driver = Driver(tmp_path, TRAINING)
    driver.session.go(Wish("run"))
    time.sleep(seconds)  # the moment is what is tested: any will do
    os.kill(driver.session.pid, signal.SIGKILL)
    assert driver.end() == Ended(-signal.SIGKILL)
    assert_whole(driver.trace)


@pytest.mark.parametrize("seconds", MOMENTS)
def test_a_killed_debugger_leaves_no_program_behind(tmp_path, seconds):
    text = DEBUGGER.format(path=[str(ROOT), str(Path(__file__).parent)], folder=str(tmp_path), program=TRAINING)
    debugger = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    with debugger, debugger.stdout as said:
        program = int(said.readline())
        time.sleep(seconds)
        debugger.kill()
    end = time.monotonic() + PATIENCE
    while not is_gone(program):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert_whole(tmp_path / "trace.gviz")


def assert_whole(trace):
    """The trace can be read to its last event, and its numbers follow each other."""
    with open_trace(trace) as log:
        timeline = Timeline(log)
        assert len(timeline) == len(log)
        for n in range(1, len(log) + 1):
            assert log.event(n) is not None
        assert timeline.at(len(log)).n == len(log)
