"""What a write does to views, leaves and what is both, in every grad mode, against PyTorch.

Each program makes a base and a view of it, changes which of them requires grad, writes to one of them, and looks at
both. The table has some 2,000,000 programs; a fixed sample of them runs always, ``make fuzz N=10000`` tries others.
"""

import os
import random

import pytest
from reference import Crashed, reference
from twin import assert_all_same, run

START = """
import torch
class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x
    @staticmethod
    def backward(ctx, g): return g
class View(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view(-1)
    @staticmethod
    def backward(ctx, g): return g.view(2, 3)
class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view(-1), x * 2
    @staticmethod
    def backward(ctx, g, h): return g.view(2, 3) + 2 * h
p = torch.full((6,), 2.).requires_grad_()
"""
BASES = [
    "torch.arange(6.).reshape(2, 3) * 1", "torch.ones(2, 3, requires_grad=True)", "torch.ones(2, 3, requires_grad=True) * 1",
    "torch.arange(6.).view(2, 3)", "(torch.ones(6, requires_grad=True) * 1).view(2, 3)",
]  # fmt: skip
VIEWS = [
    "b.view(-1)", "b.view(-1)[:]", "b.view(-1).unbind(0)[0]", "b.unbind(0)[0]", "b.unbind(0)[0][:2]", "b.split(1)[0]",
    "Same.apply(b)", "View.apply(b)", "View.apply(b)[:2]", "Two.apply(b)[0]", "b.t()", "b.detach()", "b.data", "b",
    "b.detach()[0]", "b[0:2]",
]  # fmt: skip
MODES = ["", "", "", "", "with torch.no_grad(): ", "with torch.inference_mode(): ", "with torch.enable_grad(): "]
STATES = [
    "pass", "b.requires_grad_()", "v.requires_grad_()", "b.requires_grad_(False)", "v.requires_grad_(False)", "b.detach_()",
    "v.detach_()", "b.requires_grad_(); b.requires_grad_(False)", "v.requires_grad_(); v.requires_grad_(False)",
    "b.requires_grad_(); v.requires_grad_()", "b.requires_grad = True",
]  # fmt: skip
WRITES = [
    "v.add_(1)", "v.mul_(2)", "v.zero_()", "b.add_(1)", "b.mul_(2)", "v[...] = 1.", "v[0] = 1.", "b[0] = p[:3]", "v.add_(p[0])",
    "b.add_(p[0])", "v.copy_(p[0])", "torch.add(torch.zeros_like(v), 1, out=v)", "torch.add(torch.zeros_like(b), 1, out=b)",
    "v -= 0.1", "v.data.add_(1)", "v.detach().add_(1)", "v.unsqueeze_(0)", "v.t_()", "v.squeeze_()", "b.requires_grad_()",
    "torch.optim.SGD([v], lr=1).step()", "v.index_fill_(0, torch.tensor([0]), 1.)", "v.masked_fill_(v > 0, 1.)",
    "v.requires_grad_()", "v.detach_()", "b.detach_()", "v.resize_(1)", "torch.nn.init.ones_(v)", "v.view(-1).add_(1)",
]  # fmt: skip
OUTSIDE_INFERENCE = [
    "v.data = torch.zeros_like(v)", "b.unsqueeze_(0)", "v.grad = torch.ones_like(v); torch.optim.SGD([v], lr=1.).step()",
    "b.grad = torch.ones_like(b); torch.optim.SGD([b], lr=1.).step()",
]  # fmt: skip
"""What the engine does otherwise in ``inference_mode``, see docs/differences.md."""
LOOKS = """
attempt(lambda: (b.requires_grad, b._is_view(), b.is_leaf, b.output_nr))
attempt(lambda: b.tolist() if b.is_inference() else b)
attempt(lambda: (v.requires_grad, v._is_view(), v.is_leaf, v.output_nr))
attempt(lambda: v.tolist() if v.is_inference() else v)
"""
MORE = int(os.environ.get("GVIZ_FUZZ", "0"))


def attempted(line):
    return f"try:\n    {line}\nexcept Exception as error: see(type(error).__name__, str(error))\n"


def written(chosen, view):
    """A program of the table, with this view."""
    text = START + f"b = v = {chosen.choice(BASES)}\n"
    text += attempted(chosen.choice(STATES)) + attempted(f"{chosen.choice(MODES)}v = {view}")
    text += attempted(chosen.choice(STATES))
    for _ in range(chosen.choice([1, 1, 2])):
        mode = chosen.choice(MODES)
        allowed = WRITES if "inference" in mode else WRITES + OUTSIDE_INFERENCE
        text += attempted(mode + chosen.choice(allowed)) + LOOKS
    text += attempted("(v * v).sum().backward(retain_graph=True)") + attempted("(b + b).sum().backward()")
    return text + LOOKS + "numbers(b.grad, v.grad, p.grad)\n"


@pytest.mark.torch
@pytest.mark.parametrize("view", VIEWS)
def test_as_pytorch(view):
    chosen = random.Random(None if MORE else f"view {view}")
    for _ in range(MORE or 25):
        text = written(chosen, view)
        try:
            expected = reference().run(text)
        except Crashed:
            continue
        try:
            assert_all_same(expected, run(text, "gviz.engine"), rtol=1e-6, atol=1e-6)
        except AssertionError as difference:
            raise AssertionError(f"{difference}\n{text.removeprefix(START)}") from None


FORBIDDEN = "a view of a leaf Variable that requires grad is being used in an in-place operation."


@pytest.mark.parametrize(
    "program",
    [
        "w = torch.arange(6.).reshape(2, 3).requires_grad_(); w.sum().backward(); w -= 0.1 * w.grad",
        "torch.ones(3, 2).t().requires_grad_().add_(1)",
        "w = torch.zeros(4)[:2].requires_grad_(); w[0] = 1.",
        "b = torch.ones(2, requires_grad=True) * 1; v = b[:1]; b.detach_(); v.add_(1)",
        "b = torch.ones(2, requires_grad=True); v = b[:1]; b.requires_grad_(False); v.mul_(2)",
    ],
)
def test_a_leaf_that_is_a_view_may_not_be_written(program):
    assert run(program, "gviz.engine")[0] == ("RuntimeError", FORBIDDEN)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        "v * v", "v + v", "v - v * v", "torch.stack([v, v])", "torch.cat([v, v * 2])", "torch.where(v > 0, v, v)", "v @ v",
        "torch.maximum(v, v)", "torch.nn.functional.linear(v[None], v[None])", "v.pow(v)", "v.sum() * v", "torch.lerp(v, v, v)",
        "v * x", "x * v + v", "Double.apply(v, v)", "Double.apply(v, x)", "torch.einsum('i,i->', v, v)", "v.clone().mul_(v)",
        "torch.addcmul(v, v, v)", "torch.nn.functional.mse_loss(v, v)",
    ],
)  # fmt: skip
def test_an_untracked_view_may_be_used_twice(use):
    program = f"""
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b): ctx.save_for_backward(a, b); return a * b
    @staticmethod
    def backward(ctx, g): a, b = ctx.saved_tensors; return g * b, g * a
x = torch.tensor([1., 2.], requires_grad=True)
with torch.no_grad(): v = x.view(2)
y = {use}
see(y, y.grad_fn.next_functions == ((None, 0), (None, 0)))
attempt(lambda: torch.autograd.grad(y.sum(), x, retain_graph=True))
y.sum().backward()
see(x, v)
"""
    assert_all_same(run(program, "torch"), run(program, "gviz.engine"), rtol=1e-6, atol=1e-6)
