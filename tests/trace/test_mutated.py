"""Damaged traces never end a command with a bug of gviz's own: `mutations` says what is tried, and by which rule."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = int(os.environ.get("GVIZ_HOSTILE", "60"))
SHARE = 60


@pytest.mark.parametrize("first", range(0, COUNT, SHARE))
def test_damaged_traces_are_reported_as_damaged(first):
    command = [
        sys.executable,
        str(Path(__file__).with_name("mutations.py")),
        str(first),
        str(min(SHARE, COUNT - first)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    print(done.stdout)
