"""PyTorch scripts under ``gviz record``: the same results, bit for bit, and a trace of them."""

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import gviz
from gviz.trace.file.reader import open_trace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]
TRAINING = """
import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
for step in range(4):
    x, y = torch.randn(16, 4), torch.randint(2, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    print(loss.item().hex(), torch.rand(2).tolist())
print([float(p.detach().double().sum()).hex() for p in model.parameters()])
"""


def run(*command, cwd):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def record(text, folder, *options):
    (folder / "train.py").write_text(text)
    return run("-m", "gviz", "record", "-o", "t.gviz", *options, "train.py", cwd=folder)


def test_the_same_bits_with_and_without(tmp_path):
    code, out, err = record(TRAINING, tmp_path)
    assert (code, out) == run("train.py", cwd=tmp_path)[:2], err
    assert re.search(r"wrote t\.gviz \([\d,]+ events, .*; recording took [\d.]+ \w+ of [\d.]+ s\)", err)
    with closing(sqlite3.connect(tmp_path / "t.gviz")) as connection:
        assert dict(connection.execute("SELECT key, value FROM meta"))["framework"] == "torch"


@pytest.mark.parametrize(
    ("text", "ends", "ending"),
    [
        ("import torch\nraise ValueError('before')", 1, "ValueError: before"),
        ("import torch\nw = torch.ones(2, requires_grad=True)\ny = w.exp()\nz = y.sum()\ny.add_(1)\nz.backward()\n"
         "(y * y).sum().backward()", 1, "RuntimeError: one of the variables needed"),
        ("import torch\nw = torch.ones(2, requires_grad=True)\nw.sum().backward()\nimport sys\nsys.exit(7)", 7, ""),
    ],
)  # fmt: skip
def test_scripts_that_fail(tmp_path, text, ends, ending):
    code, out, err = record(text, tmp_path)
    assert (code, out) == (ends, "")
    assert ending in err
    assert "gviz/adapters" not in err
    with open_trace(tmp_path / "t.gviz") as log:
        assert len(log) > 0 or "before" in ending


def test_values_and_marks(tmp_path):
    text = "import torch, gviz\nw = torch.ones(100, requires_grad=True)\ngviz.mark('a')\n(w * 2).sum().backward()\n"
    text += "gviz.mark('b')\nw.exp()\n"
    code, _, err = record(text, tmp_path, "--values", "none", "--from", "a", "--to", "b")
    assert code == 0, err
    with open_trace(tmp_path / "t.gviz") as timeline:
        kinds = [type(timeline.event(seq)).__name__ for seq in range(1, len(timeline) + 1)]
        assert kinds[0] == "Marked"
        assert kinds[-1] == "Marked"
        assert timeline.event(2).outputs[0].value.stats is None


def test_a_mark_or_a_module_that_never_comes_is_told(tmp_path):
    text = "import torch, gviz\nw = torch.ones(100, requires_grad=True)\ngviz.mark('a')\n(w * 2).sum().backward()\n"
    _, _, err = record(text, tmp_path, "--from", "start")
    assert "nothing was recorded: the program did not reach gviz.mark('start')" in err
    _, _, err = record(text, tmp_path, "-f", "--module", "encoder.*")
    assert "nothing was recorded" not in err
    with open_trace(tmp_path / "t.gviz") as timeline:
        assert timeline.event(1).unseen == "modules"
        assert "modules that fit encoder.* " in timeline.event(1).message


def test_recording_from_within(tmp_path):
    model = torch.nn.Linear(2, 1)
    with gviz.record(tmp_path / "t.gviz", model=model):
        model(torch.ones(1, 2)).sum().backward()
    handle = gviz.attach(model, tmp_path / "u.gviz")
    model(torch.ones(1, 2)).sum().backward()
    handle.close()
    for name in ("t.gviz", "u.gviz"):
        with open_trace(tmp_path / name) as timeline:
            said = [type(timeline.event(seq)).__name__ for seq in range(1, len(timeline) + 1)]
            assert said.count("GradAccumulated") == 2
            assert said.count("Named") == 2
    assert not torch.overrides._get_current_function_mode_stack()


def test_torch_missing(tmp_path):
    (tmp_path / "train.py").write_text("import torch")
    without = "import sys, importlib.util as u; find = u.find_spec\n"
    without += "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
    (tmp_path / "sitecustomize.py").write_text(without)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "gviz", "record", "--engine", "torch", "-o", "t.gviz", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 4
    assert "pip install 'gviz[torch]'" in done.stderr


def test_a_script_without_torch_pays_nothing(tmp_path):
    code, out, _ = record("import sys\nprint('torch' in sys.modules, 'gviz.adapters.pytorch' in sys.modules)", tmp_path)
    assert (code, out) == (0, "False False\n")


def test_the_options_of_a_part_together(tmp_path):
    """Passes alone, up to the first nan; the program goes on, and prints what it prints."""
    text = TRAINING.replace("loss.backward()", "(loss * (float('nan') if step == 2 else 1)).backward()")
    code, out, err = record(text, tmp_path, "--on", "nan", "--phase", "backward", "--module", "*")
    assert code == 0
    assert len(out.splitlines()) == 5
    assert "the recording ended at the first nan, in its last event" in err
    with open_trace(tmp_path / "t.gviz") as log:
        assert [type(log.event(seq)).__name__ for seq in range(1, len(log) + 1)].count("BackwardStarted") == 2
