"""What a program can see of itself, it sees as without gviz: counted operations, graphs, compiled code, events."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]
MODEL = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
x = torch.ones(4, 2)
"""
PROGRAMS = {
    "a dispatch mode": """
from torch.utils._python_dispatch import TorchDispatchMode
seen = []
class Counting(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.append(str(function))
        return function(*args, **(kwargs or {}))
with Counting():
    (model(x) * 2).t().sum().backward()
print(seen)
""",
    "a subclass": """
seen = []
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        seen.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})
mine = torch.ones(3).as_subclass(Mine).requires_grad_()
loss = (mine * 2 + 1).sum()
loss.backward()
with torch.no_grad():
    mine.add_(1)
print(seen, mine.grad)
""",
    "a subclass with attributes of its own": """
def asked(name):
    held = getattr(torch.Tensor, name)
    def of(tensor, *given):
        print("asked for", name)
        return held(tensor) if callable(held) else held.__get__(tensor)
    return of if callable(held) else property(of)
names = ("grad", "grad_fn", "is_leaf", "shape", "dtype", "is_inference", "untyped_storage", "numel")
Asking = type("Asking", (torch.Tensor,), {name: asked(name) for name in names})
leaf = torch.nn.Parameter(torch.ones(3).as_subclass(Asking))
optimizer = torch.optim.SGD([leaf], lr=0.1)
(model(x).mean() * (leaf * 2 + leaf)).sum().as_subclass(torch.Tensor).backward()
print("passed")
with torch.no_grad():
    torch.Tensor.add_(leaf, 1)
print(leaf.grad.as_subclass(torch.Tensor))
""",
    "a subclass that wraps": """
from torch.utils._pytree import tree_map
seen = []
class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
    def __init__(self, held):
        self.held = held
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        seen.append(str(function))
        args, kwargs = tree_map(lambda it: getattr(it, "held", it), (args, kwargs or {}))
        return tree_map(lambda it: cls(it) if isinstance(it, torch.Tensor) else it, function(*args, **kwargs))
wrapper, plain = Wrapper(torch.ones(3)).requires_grad_(), torch.ones(3, requires_grad=True)
(wrapper * wrapper + plain * 2 + plain * wrapper).sum().backward()
print(seen, wrapper.grad.held, plain.grad.held)
""",
    "functions in the place of PyTorch's": """
import weakref
from unittest import mock
import torch.nn.functional as F
seen = []
def count(home, name):
    original = getattr(home, name)
    def counting(*args, **kwargs):
        seen.append(name)
        return original(*args, **kwargs)
    setattr(home, name, counting)
for name in ("matmul", "__add__", "sin", "backward"):
    count(torch.Tensor, name)
for name in ("relu", "softmax", "max_pool1d"):
    count(F, name)
F.layer_norm = lambda *args, original=F.layer_norm: original(*args) * 2
a = torch.ones(2, 2, requires_grad=True)
b = (a.matmul(a) + a).sin()
with mock.patch("torch.nn.functional.gelu", wraps=F.gelu) as gelu:
    c = F.gelu(b) * F.relu(b) * F.softmax(b, -1) + F.layer_norm(a, (2,)).sum() + F.max_pool1d(a, 1)
class Counting:
    __hash__ = None
    def __init__(self, function):
        self.function, self.calls = function, 0
    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)
F.elu = Counting(F.elu)
c = c + F.elu(b)
def mish(x, original=F.mish):
    return original(x) * 3
F.mish, mish, gone = mish, F.mish, weakref.ref(mish)
c = c + F.mish(b)
F.mish = mish
c.sum().backward()
print(seen, gelu.call_count, F.elu.calls, gone() is None, a.grad)
""",
    "transformers that only evaluate": """
import warnings
warnings.simplefilter("ignore")
layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
encoder = torch.nn.TransformerEncoder(layer, 2).eval()
attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
a = torch.randn(2, 3, 8)
padding = torch.tensor([[False, True, True], [False, False, False]])
with torch.no_grad():
    print(encoder(a, src_key_padding_mask=padding), attention(a, a, a)[0].sum().item().hex())
    print(torch.jit.script(encoder.layers[0])(a).sum().item().hex())
    print(torch.compile(layer.eval(), backend="eager", fullgraph=True)(a).sum().item().hex())
print(torch.overrides.has_torch_function((a,)))
""",
    "a profiler": """
with torch.profiler.profile() as profile:
    (torch.ones(3, requires_grad=True) * 2).sum().backward()
print(sorted(event.name for event in profile.events()))
""",
    "warnings": """
import sys, warnings
sys.stderr = sys.stdout
h = model(x)
for _ in range(2):
    h.grad
h.grad
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        h.grad
    except UserWarning:
        print("raised")
    try:
        torch.nn.functional.softmax(h)
    except UserWarning:
        print("raised")
for _ in range(2):
    torch.nn.functional.softmax(h)
torch.nn.functional.mse_loss(h, x)
model[0].register_full_backward_hook(lambda module, given, grads: None)
model(x).sum().backward()
warnings.simplefilter("ignore")
h.grad
""",
    "a warning in compiled code": """
import sys, warnings
sys.stderr = sys.stdout
def warned(a):
    warnings.warn("computed")
    return a.sin().sum()
print(torch.compile(warned, backend="aot_eager")(x).item().hex())
""",
    "export": """
for strict in (False, True):
    print(torch.export.export(model, (x,), strict=strict).graph_module.code)
""",
    "make_fx": """
from torch.fx.experimental.proxy_tensor import make_fx
print(make_fx(torch.func.grad(lambda a: model(a * 2).sum()))(x).code)
""",
    "jit.trace": """
print(torch.jit.trace(lambda a: (a * 2).relu().sum(), (x,)).graph)
print(torch.jit.trace(model, (x,)).graph)
""",
    "batched gradients": """
print(torch.autograd.functional.hessian(lambda a: a.pow(3).sum(), torch.ones(3), vectorize=True))
print(torch.autograd.gradcheck(torch.sin, torch.ones(3).double().requires_grad_(), check_batched_grad=True))
""",
    "compile": """
import warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "Guards may run slower")  # PyTorch's own, with Python 3.13.0
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss = compiled(x).sum()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(torch.compile(lambda a: model(a).sum() * 2, backend="aot_eager", fullgraph=True)(x).item().hex())
""",
}


ALL = """
import runpy, sys, traceback, warnings, torch
from pathlib import Path
for path in sorted(Path("programs").iterdir()):
    print("====", path.stem, flush=True)
    try:
        with warnings.catch_warnings():
            runpy.run_path(str(path), run_name="__main__")
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        print("failed")
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What the programs print with gviz and without, by their names: one process each, for PyTorch takes its time."""
    folder = tmp_path_factory.mktemp("seen")
    (folder / "programs").mkdir()
    for name, text in PROGRAMS.items():
        (folder / "programs" / f"{name}.py").write_text(MODEL + text)
    (folder / "all.py").write_text(ALL)
    commands = ["-m", "gviz", "record", "-o", "t.gviz", "all.py"], ["all.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "KINETO_LOG_LEVEL": "5"}
    done = [
        subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
        for command in commands
    ]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr
    return [dict(part.split("\n", 1) for part in one.stdout.split("==== ")[1:]) for one in done], done[0].stderr


@pytest.mark.parametrize("what", PROGRAMS)
def test_as_without_gviz(outputs, what):
    (with_gviz, without), errors = outputs
    assert with_gviz[what] == without[what], errors
    assert with_gviz[what].strip() not in ("", "failed"), errors
