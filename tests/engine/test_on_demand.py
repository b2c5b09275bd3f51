"""What importing the engine leaves for later."""

from __future__ import annotations

import subprocess
import sys

import gviz.engine as torch

LATE = ("gviz.engine.jit", "gviz.engine.utils", "gviz.engine.cuda", "numpy.random", "zipfile")


def test_the_engine_is_imported_without_what_few_programs_use() -> None:
    code = f"import sys, gviz.engine; print([name for name in {LATE} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_what_is_left_for_later_is_there_when_asked_for() -> None:
    code = (
        "import gviz.engine as torch; print(callable(torch.save), torch.cuda.is_available(), torch.utils.data.__name__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True False gviz.engine.utils.data\n"


def test_an_ops_rule_is_compiled_once() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    (x * x).backward()
    node = (x * x).grad_fn
    assert node is not None
    ran = type(node).vjp
    (x * x).backward()
    assert type(node).vjp is ran
    assert ran.__code__.co_filename.endswith(":mul")
