"""``python -m gviz`` where files and packages are named as what gviz imports, and as gviz itself."""

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


def test_the_program_is_recorded_by_the_gviz_that_was_called(tmp_path):
    """Where another one is installed, as beside a checkout."""
    another, program, trace = tmp_path / "gviz", tmp_path / "square.py", tmp_path / "t.gviz"
    another.mkdir()
    (another / "__init__.py").write_text("raise ImportError('another gviz')\n")
    program.write_text("import torch\nx = torch.tensor(3.0, requires_grad=True)\n")
    command = [sys.executable, "-m", "gviz", "record", "--engine", "builtin", "-o", str(trace), str(program)]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=Path(gviz.__file__).parents[1], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    timeline = gviz.load(trace)
    assert [frame.path for frame in timeline.info(next(iter(timeline.nodes))).frames] == [str(program)]
