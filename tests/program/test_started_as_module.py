"""``python -m gviz`` in a folder whose files are named as what gviz imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gviz


@pytest.mark.parametrize("name", ["numpy.py", "torch.py", "msgspec.py"])
def test_a_program_may_be_called_as_a_library(name, tmp_path):
    (tmp_path / name).write_text("import torch\nprint(torch.ones(2).sum())\n")
    command = [sys.executable, "-m", "gviz", "record", "--engine", "builtin", "-o", "t.gviz", name]
    env = os.environ | {"PYTHONPATH": str(Path(gviz.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout) == (0, "tensor(2.)\n"), done.stderr
