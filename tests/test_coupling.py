"""Nothing hangs on the names of gviz's own files: frames of gviz are known by their package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gviz

RENAMED = (
    "instrumentation", "arguments", "argument_parser", "functions_and_methods", "operation_watchers", "tensor",
    "backward", "node", "messages", "op", "views", "anomaly_detection", "unsupported_names",
)  # fmt: skip
"""Files of the engine with functions that are between a program and what records it, or warns it."""

PROGRAM = """
import warnings
import gviz.engine as torch
from gviz import load, record

with record("run.gviz"), warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = torch.tensor([[1.0, 3.0], [2.0, 5.0]], requires_grad=True)
    best, where = x.max(dim=1)
    first, second = x
    model = torch.nn.Sequential(torch.nn.LSTM(2, 3))
    hidden, state = model(x)
    (gradient,) = torch.autograd.grad(best.sum() + first.sum(), x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hidden.sum().backward()
    optimizer.step()
    best[torch.ones(2, dtype=torch.uint8)] = torch.zeros(2)
    torch.nn.functional.softmax(x)
print([(one.filename, one.lineno) for one in caught])
timeline = load("run.gviz")
for n in range(1, len(timeline) + 1):
    print(timeline.event(n))
"""


def what_is_recorded(package, folder):
    """What the program prints of its recording, and of where it was warned, with gviz from the folder `package`."""
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "program.py"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr
    return ran.stdout.replace(str(folder), "")


def rename(package):
    """Give files of the engine other names, and their importers too."""
    names = "|".join(RENAMED)
    for name in RENAMED:
        (package / "engine" / f"{name}.py").rename(package / "engine" / f"other_{name}.py")
    of_engine = re.compile(r"^(\s*from gviz\.engine import )(\([^)]*\)|.*)$", re.MULTILINE)
    for file in package.rglob("*.py"):
        text = re.sub(rf"\bgviz\.engine\.({names})\b", r"gviz.engine.other_\1", file.read_text())
        file.write_text(
            of_engine.sub(lambda found: found[1] + re.sub(rf"\b({names})\b", r"other_\1 as \1", found[2]), text)
        )


def test_files_of_the_engine_can_be_renamed(tmp_path):
    here = Path(gviz.__file__).parent
    as_it_is = what_is_recorded(here.parent, tmp_path / "before")
    shutil.copytree(here, tmp_path / "copy" / "gviz", ignore=shutil.ignore_patterns("__pycache__"))
    rename(tmp_path / "copy" / "gviz")
    assert what_is_recorded(tmp_path / "copy", tmp_path / "after") == as_it_is
    for seen in ("Returned(", "OptimizerStepped(", "('/program.py', 17), ('/program.py', 18)"):
        assert seen in as_it_is
