"""Checkpoints of both kinds, against PyTorch, and what they keep."""

import weakref

import pytest
from twin import compare

import gviz.engine as torch

SETUP = """
from torch.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop
x = torch.tensor([1., 2.], requires_grad=True); w = torch.tensor([0.5, 3.], requires_grad=True); c = torch.ones(2)
calls = []
def f(a, b=1):
    calls.append(torch.is_grad_enabled()); return (a * w).sin() * b
def clear():
    x.grad = w.grad = None; calls.clear()
"""

PROGRAMS = {
    "values and gradients": """
for kind in (True, False):
    clear(); y = checkpoint(f, x, use_reentrant=kind); see(y, y.grad_fn.name(), calls); y.sum().backward(); see(x, w, calls)
    clear(); y = checkpoint(f, x * 2, 3, use_reentrant=kind); (y * y).sum().backward(); see(x, w, calls); attempt(lambda: y.sum().backward())
    clear(); y = checkpoint(f, x, use_reentrant=kind); y.sum().backward(retain_graph=True); y.sum().backward(); see(x, w, calls)
    clear(); y = checkpoint(f, checkpoint(f, x, use_reentrant=kind), use_reentrant=kind); y.sum().backward(); see(x, w, calls)
    clear(); y = checkpoint(lambda a: checkpoint(f, a * 2, use_reentrant=kind) + a, x, use_reentrant=kind); y.sum().backward(); see(x, w)
    clear(); y, z, n = checkpoint(lambda a: (a * w, a.exp(), 3), x, use_reentrant=kind); (y + z * 2).sum().backward(); see(x, w, n)
    with torch.no_grad(): see(checkpoint(f, x, use_reentrant=kind))
""",
    "without reentrant": """
y = checkpoint(f, a=x, b=4, use_reentrant=False); y.sum().backward(); see(x, w)
clear(); y = checkpoint(f, x, use_reentrant=False); see(torch.autograd.grad(y.sum(), x), calls); 
y = checkpoint(f, x, use_reentrant=False); (g,) = torch.autograd.grad(y.sum(), x, create_graph=True); numbers(g); numbers(*torch.autograd.grad(g.sum(), (x, w)))
clear(); y = checkpoint(f, c, use_reentrant=False); y.sum().backward(); see(w, calls)
clear(); y = checkpoint(f, x, use_reentrant=False, early_stop=False); y.sum().backward(); see(w, calls)
z = x * 1; y = checkpoint(lambda a: a.sin(), z, use_reentrant=False); z.add_(1); attempt(lambda: y.sum().backward())
y = checkpoint(lambda a: a.exp(), x, use_reentrant=False); see(y.grad_fn.name()); numbers(y.grad_fn._saved_result); y.sum().backward(); see(x)
""",
    "with reentrant": """
y = checkpoint(f, x, use_reentrant=True); attempt(lambda: torch.autograd.grad(y.sum(), x)); attempt(lambda: y.sum().backward(inputs=[x]))
y = checkpoint(lambda a: a.detach(), x, use_reentrant=True); attempt(lambda: y.sum().backward())
y = checkpoint(f, c, use_reentrant=True); see(y)
""",
    "what does not repeat": """
state = []
def other(a):
    state.append(1); return a.sin() if len(state) % 2 else a.sin().exp().exp()
y = checkpoint(other, x, use_reentrant=False); y.sum().backward(); see(x)
def fewer(a):
    state.append(1); return a.sin().exp().exp() if len(state) == 1 else a.sin()
state.clear(); y = checkpoint(fewer, x, use_reentrant=False); attempt(lambda: y.sum().backward())
def shape(a):
    state.append(1); return a.sin() if len(state) == 1 else a[:1].sin()
state.clear(); y = checkpoint(shape, x, use_reentrant=False); attempt(lambda: y.sum().backward())
state.clear(); y = checkpoint(shape, x, use_reentrant=False, determinism_check="none"); attempt(lambda: y.sum().backward())
def more(a):
    state.append(1); return a.sin() if len(state) == 1 else a.sin().exp().exp()
state.clear(); y = checkpoint(more, x, use_reentrant=False, early_stop=False); attempt(lambda: y.sum().backward())
with set_checkpoint_early_stop(False): state.clear(); y = checkpoint(more, x, use_reentrant=False)
attempt(lambda: y.sum().backward()); see(issubclass(CheckpointError, RuntimeError))
""",
    "saved tensors asked for twice": """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a); return a * 2
    @staticmethod
    def backward(ctx, g): return g * 2 + ctx.saved_tensors[0] * 0 + ctx.saved_tensors[0] * 0
y = checkpoint(Twice.apply, x, use_reentrant=False); attempt(lambda: y.sum().backward())
""",
    "random numbers": """
def noisy(a): return a * torch.rand(2)
for kind in (True, False):
    for preserve in (True, False):
        torch.manual_seed(0); x.grad = None
        y = checkpoint(noisy, x, use_reentrant=kind, preserve_rng_state=preserve); y.sum().backward()
        see(bool((x.grad * x == y).all()) if preserve else None)
""",
    "one after the other": """
steps = [torch.sin, torch.exp, lambda a: a * w, torch.cos, torch.tanh]
for kind in (True, False):
    for segments in (1, 2, 3, 5):
        clear(); y = checkpoint_sequential(steps, segments, x, use_reentrant=kind); see(y.grad_fn.name()); numbers(y.detach()); y.sum().backward(); see(x, w)
""",
    "what is refused": """
attempt(lambda: checkpoint(f, x, use_reentrant=True, b=3)); attempt(lambda: checkpoint(f, x, use_reentrant=True, debug=True)); attempt(lambda: checkpoint(f, x, use_reentrant=False, determinism_check="all"))
attempt(lambda: checkpoint_sequential([f], 1, x, use_reentrant=True, b=3))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])


def test_not_saying_which_kind_is_warned_of():
    checkpoint = torch.utils.checkpoint.checkpoint
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="^torch.utils.checkpoint: the use_reentrant parameter should be passed"):
        assert checkpoint(torch.sin, x).grad_fn.name() == "CheckpointFunctionBackward"
    with pytest.warns(UserWarning, match="^torch.utils.checkpoint.checkpoint_sequential: the use_reentrant"):
        torch.utils.checkpoint.checkpoint_sequential([torch.sin], 1, x)
    with pytest.warns(UserWarning, match="^None of the inputs have requires_grad=True"):
        checkpoint(torch.sin, torch.ones(2), use_reentrant=True)


def test_what_is_computed_inside_is_not_kept():
    kept = []

    def function(a):
        inner = a.sin()
        kept.append(weakref.ref(inner))
        return inner.exp()

    x = torch.ones(2, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    assert kept[0]() is None
    y.sum().backward()
    assert [reference() for reference in kept] == [None, None]
