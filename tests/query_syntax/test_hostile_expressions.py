"""Random expressions take no more memory than was counted, and end: `hostile_expressions` says by which rules."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = int(os.environ.get("GVIZ_HOSTILE", "200"))
SHARE = 100


@pytest.mark.parametrize("first", range(0, COUNT, SHARE))
def test_random_expressions_keep_to_their_budget(first):
    script = Path(__file__).with_name("hostile_expressions.py")
    count = min(SHARE, COUNT - first)
    command = [sys.executable, str(script), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith(f"{count} expressions"), done.stdout
