"""``import torch`` means the built-in engine for one run, and only where it should."""

from importlib import import_module
from types import ModuleType

import pytest
from cli.programs import python, recorded

from gviz.program.torch_alias import SHAPED, exists, is_imported_by

WITHOUT_TORCH = """\
import sys
from importlib.machinery import PathFinder
class Hidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        found = PathFinder.find_spec(name, path, target)
        return None if name == "torch" and found and "site-packages" in found.origin else found
sys.meta_path[sys.meta_path.index(PathFinder)] = Hidden
"""

USES_TORCH = """\
import torch
import torch.nn as nn
import torch.nn.functional
from torch import optim
from torch.nn import functional as F
print(torch.__name__, nn is torch.nn, F is torch.nn.functional, optim.__name__)
x = torch.tensor(2.0, requires_grad=True)
(x * x).backward()
print(x.grad)
"""

TORCHVIZ = """\
import torch
from torchviz import make_dot
x = torch.ones(2, requires_grad=True)
dot = make_dot((x * x).sum(), params={"x": x}, show_attrs=True)
print(type(dot).__name__, "edge-forward" in dot.source, "(2,)" in dot.source)
"""

CUDA_GRAPH = """\
import torch
graph = torch.cuda.CUDAGraph()
stream = torch.cuda.Stream()
x = torch.ones(3, device="cuda")
w = torch.ones(3, 3, device="cuda")
def model(w, x):
    return w @ x
with torch.cuda.stream(stream):
    y = model(w, x)
with torch.cuda.graph(graph):
    y = model(w, x)
x.copy_(x * 2)
graph.replay()
print(y)
"""

LACKING = {
    "import torch.fx": "ModuleNotFoundError: the built-in engine has no torch.fx",
    "import torch.op": "ModuleNotFoundError: the built-in engine has no torch.op",
    "import torchvision": "ModuleNotFoundError: torchvision needs real PyTorch: the built-in engine cannot run it",
    "from torchaudio import transforms": "ModuleNotFoundError: torchaudio needs real PyTorch",
    "from torch import fft": "ImportError: gviz's built-in engine has no torch.fft yet",
    "from torch.nn import Linea": "ImportError: gviz's built-in engine has no torch.nn.Linea yet; it has Linear",
    "torch.jit.script": "AttributeError: gviz's built-in engine has no torch.jit.script yet",
}

ENGINE_SAYS = "gviz.engine True True gviz.engine.optim\ntensor(4.)\n"


def test_builtin(tmp_path):
    (tmp_path / "program.py").write_text(USES_TORCH)
    assert recorded("--engine", "builtin", "program.py", cwd=tmp_path) == (0, ENGINE_SAYS, "")


def test_cuda_graphs_are_captured_on_the_cpu(tmp_path):
    (tmp_path / "program.py").write_text(CUDA_GRAPH)
    code, out, err = recorded("--engine", "builtin", "program.py", cwd=tmp_path)
    assert (code, out) == (0, "tensor([6., 6., 6.])\n")
    assert err.count("has no GPU: device 'cuda' means the CPU here") == 1


def test_only_for_this_run(tmp_path):
    (tmp_path / "program.py").write_text("import gviz.engine, sys\nprint('torch' in sys.modules)")
    assert recorded("program.py", cwd=tmp_path) == (0, "False\n", "")


def test_what_the_engine_does_not_have(tmp_path):
    tries = "".join(f"try:\n    {line}\nexcept Exception as e:\n    say(e)\n" for line in LACKING)
    say = "def say(e):\n    print(f'{type(e).__name__}: {e}'.splitlines()[-1])\n"
    (tmp_path / "program.py").write_text(f"import torch\n{say}{tries}raise ModuleNotFoundError('the last')\n")
    code, out, err = recorded("--engine", "builtin", "program.py", cwd=tmp_path)
    assert code == 1
    assert err.splitlines()[-1] == "ModuleNotFoundError: the last"
    for line, said in zip(out.splitlines(), LACKING.values(), strict=True):
        assert line.startswith(said)


def test_every_shaped_module_is_the_engines(tmp_path):
    there = sorted(name for name in SHAPED if exists(name.replace("torch", "gviz.engine")))
    assert {"torch", "torch.nn.functional", "torch.cuda", "torch.backends.cudnn"} <= {*there}
    imports = "\n".join(f"import {name}; print(sys.modules['{name}'].__name__)" for name in there)
    (tmp_path / "program.py").write_text(f"import sys\n{imports}")
    code, out, err = recorded("--engine", "builtin", "program.py", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert out.split() == [name.replace("torch", "gviz.engine") for name in there]


@pytest.mark.torch
def test_every_shaped_module_is_pytorchs():
    for name in SHAPED:
        assert isinstance(import_module(name), ModuleType)


def test_modules_of_the_program_see_the_engine_too(tmp_path):
    (tmp_path / "model.py").write_text("import torch.nn as nn\nclass Net(nn.Module):\n    pass\n")
    (tmp_path / "program.py").write_text("import model, torch\nprint(isinstance(model.Net(), torch.nn.Module))")
    assert recorded("--engine", "builtin", "program.py", cwd=tmp_path) == (0, "True\n", "")


def test_what_builds_on_pytorch(tmp_path):
    (tmp_path / "program.py").write_text(TORCHVIZ)
    assert recorded("--engine", "builtin", "program.py", cwd=tmp_path) == (0, "Digraph True True\n", "")


def test_auto_without_torch_says_so_once(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH)
    (tmp_path / "program.py").write_text(USES_TORCH)
    code, out, err = recorded("program.py", cwd=tmp_path, path=tmp_path)
    assert (code, out) == (0, ENGINE_SAYS)
    assert err == "gviz: PyTorch is not installed, so `import torch` means the built-in engine in this run\n"


def test_a_program_without_torch_is_warned_of_once(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH)
    (tmp_path / "program.py").write_text("x = 3\nprint(x is 3)")
    assert recorded("program.py", cwd=tmp_path, path=tmp_path) == python("program.py", cwd=tmp_path, path=tmp_path)


@pytest.mark.parametrize("output", [[], ["-o", "trace.gviz"]])
def test_pytorch_that_is_wanted_and_missing_is_said_and_leaves_nothing(tmp_path, monkeypatch, output):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH)
    (tmp_path / "program.py").write_text(USES_TORCH)
    code, out, err = recorded("--engine", "torch", *output, "program.py", cwd=tmp_path, path=tmp_path)
    assert (code, out) == (4, "")
    assert err.startswith("gviz: error: PyTorch is not installed\nhint: pip install 'gviz[torch]'")
    assert err.count("\n") == 2
    assert not [*tmp_path.rglob("*.gviz")]


@pytest.mark.parametrize("hidden", ["", WITHOUT_TORCH], ids=["as it is", "without PyTorch"])
def test_what_is_only_called_torch_runs_and_is_said_not_to_be_recorded(tmp_path, hidden):
    (tmp_path / "sitecustomize.py").write_text(hidden)
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "torch.py").write_text("name = 'real'")
    (tmp_path / "program" / "main.py").write_text("import torch\nprint(torch.name)")
    code, out, err = recorded("program/main.py", cwd=tmp_path, path=tmp_path)
    assert (code, out) == (0, "real\n")
    assert "gviz: warning: PyTorch's operations cannot be recorded" in err


def test_a_program_without_torch_is_left_alone(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH)
    (tmp_path / "program.py").write_text("try:\n    __import__('torch')\nexcept ImportError as e:\n    print(e)")
    assert recorded("program.py", cwd=tmp_path, path=tmp_path) == python("program.py", cwd=tmp_path, path=tmp_path)


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import torch", True),
        ("import os, torch.nn as nn", True),
        ("from torch.nn import functional", True),
        ("def f():\n    class A:\n        def g(self):\n            import torch", True),
        ("import torchvision", False),
        ("torch = 1\ntorch.nn", False),
        ("from . import torch", False),
        ("from .torch import nn", False),
        ("from .torch import nn\nfrom torch import nn", True),
        ("'import torch'", False),
    ],
)
def test_is_imported_by(text, imported):
    assert is_imported_by(compile(text, "x", "exec")) is imported


@pytest.mark.parametrize(
    ("options", "named"), [(("--phase", "backward"), "--phase"), (("--module", "encoder.*"), "--module")]
)
def test_what_only_pytorch_programs_can_leave_out_is_refused_elsewhere(tmp_path, options, named):
    (tmp_path / "main.py").write_text(USES_TORCH)
    code, out, err = recorded("--engine", "builtin", *options, "main.py", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert f"{named} can only be used with PyTorch" in err
    assert not (tmp_path / "trace.gviz").exists()


def test_it_is_said_if_a_program_turned_out_to_use_no_pytorch(tmp_path):
    (tmp_path / "main.py").write_text("import gviz.engine as torch\ntorch.ones(1)\n")
    code, _, err = recorded("--engine", "torch", "--module", "x", "main.py", cwd=tmp_path)
    assert code == 0
    assert "--module had no effect: the program did not use PyTorch" in err
