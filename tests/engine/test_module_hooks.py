"""Hooks of modules, against PyTorch: when they are called, with what, and what comes of what they return."""

import pytest
from recording import events_of
from twin import compare

import gviz.engine as torch
from gviz import events as e
from gviz.engine import nn

SETUP = """
from torch import nn
def fill(module):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((torch.arange(float(p.numel())).view(p.shape) + i) / 10 - 0.35)
    return module
class Pair(nn.Module):
    def forward(self, a, b=None, scale=1.):
        return a * scale, (b if b is not None else a) + 1
class Fails(nn.Module):
    def forward(self, x): raise ValueError("no")
net = fill(nn.Sequential(nn.Linear(3, 2), nn.Tanh())); x = torch.arange(6.).view(2, 3).requires_grad_()
"""

PROGRAMS = {
    "forward": """
h = [net.register_forward_pre_hook(lambda m, args: see("pre", type(m).__name__, len(args), args[0])),
     net[0].register_forward_pre_hook(lambda m, args: args[0] * 2),
     net[0].register_forward_pre_hook(lambda m, args: (args[0] + 1,), prepend=True),
     net[1].register_forward_hook(lambda m, args, out: see("out", args, out)),
     net[1].register_forward_hook(lambda m, args, out: out * 3), net.register_forward_hook(lambda m, args, out: [out, 7])]
see(net(x)); h[4].remove(); h[5].remove(); see(net(x)); h[1].remove(); h[2].remove(); h[2].remove(); see(net(x))
with net.register_forward_hook(lambda m, args, out: 5): see(net(x))
""",
    "with keywords": """
p = Pair(); p.register_forward_pre_hook(lambda m, args, kwargs: (args, {**kwargs, "scale": 4.}), with_kwargs=True)
p.register_forward_hook(lambda m, args, kwargs, out: see(len(args), sorted(kwargs), kwargs["scale"]), with_kwargs=True)
see(p(x, b=x)); p.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True); attempt(lambda: p(x))
""",
    "always called": """
f = Fails(); f.register_forward_hook(lambda m, args, out: see("ran", out), always_call=True); f.register_forward_hook(lambda m, args, out: see("not"))
attempt(lambda: f(x)); f.register_forward_hook(lambda m, args, kwargs, out: 1 / 0, always_call=True, with_kwargs=True); attempt(lambda: f(x))
""",
    "full backward": """
net.register_full_backward_hook(lambda m, gi, go: see("all", gi, go)); net[0].register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
net[1].register_full_backward_pre_hook(lambda m, go: see("before", go)); net[1].register_full_backward_pre_hook(lambda m, go: (go[0] * 2,), prepend=True)
y = net(x); see(y); y.sum().backward(); see(x, net[0].weight)
y = net(x.detach()); y.sum().backward(); see(net[0].weight)
p = Pair(); p.register_full_backward_hook(lambda m, gi, go: see(gi, go)); a, b = p(x, 3, scale=2.); a.sum().backward(); numbers(x.grad)
with torch.no_grad(): see(net(x))
""",
    "what backward hooks refuse": """
net.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0])); attempt(lambda: net(x).sum().backward())
attempt(lambda: net.register_backward_hook(lambda m, gi, go: None))
n = fill(nn.Linear(3, 2)); n.register_full_backward_pre_hook(lambda m, go: (go[0], go[0])); attempt(lambda: n(x).sum().backward())
n = fill(nn.Linear(3, 2)); n.register_full_backward_hook(lambda m, gi, go: (torch.ones(2, 3),)); attempt(lambda: n(x.detach()).sum().backward())
n = fill(nn.Linear(3, 2)); n.register_full_backward_hook(lambda m, gi, go: None); n(x).sum().backward()
""",
    "old backward hooks": """
net.register_backward_hook(lambda m, gi, go: see(gi, go)); net(x).sum().backward(); see(x)
attempt(lambda: net.register_full_backward_hook(lambda m, gi, go: None))
""",
    "of all modules": """
M = nn.modules.module
h = [M.register_module_forward_pre_hook(lambda m, args: see("pre", type(m).__name__)), M.register_module_forward_hook(lambda m, args, out: see("post", type(m).__name__)),
     M.register_module_full_backward_hook(lambda m, gi, go: see("back", type(m).__name__, gi, go)), M.register_module_full_backward_pre_hook(lambda m, go: see("first", type(m).__name__))]
net.register_forward_hook(lambda m, args, out: see("own")); net(x).sum().backward(); see(x)
for handle in h: handle.remove()
net(x)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name], rtol=1e-4, atol=1e-6)


def test_what_hooks_do_happens_in_their_modules_scope():
    layer = nn.Linear(2, 1)
    layer.register_forward_pre_hook(lambda m, args: args[0] * 2)
    layer.register_forward_hook(lambda m, args, out: out.exp())
    events = events_of(lambda: layer(torch.ones(1, 2)))
    ops = {event.op: event.name for event in events if isinstance(event, e.OpSeen)}
    scopes = {ops[event.op]: event.scope for event in events if isinstance(event, e.NodeCreated)}
    assert {name: scopes[name] for name in ("mul", "addmm", "exp")} == {"mul": 1, "addmm": 1, "exp": 1}


HANDLES = """
from torch import nn
from torch.utils.hooks import RemovableHandle
import torch
m, leaf = nn.Linear(2, 2), torch.ones(2, requires_grad=True)
NAMES = [name for name in sorted(vars(m)) if "hooks" in name]
def kept(): return {name: list(getattr(m, name).values()) for name in NAMES if name.endswith(("kwargs", "called"))}
def counts(): return [len(getattr(m, name)) for name in NAMES]
def hook(*args): return None
def seen(handle):
    during = counts(), kept()
    handle.remove()
    handle.remove()
    return during, counts(), type(handle).__name__, isinstance(handle, RemovableHandle)
"""
REGISTERED = (
    "m.register_forward_hook(hook)",
    "m.register_forward_hook(hook, with_kwargs=True)",
    "m.register_forward_hook(hook, always_call=True)",
    "m.register_forward_hook(hook, with_kwargs=True, always_call=True, prepend=True)",
    "m.register_forward_pre_hook(hook)",
    "m.register_forward_pre_hook(hook, with_kwargs=True)",
    "m.register_full_backward_hook(hook)",
    "m.register_full_backward_pre_hook(hook)",
    "m.register_state_dict_pre_hook(hook)",
    "m.register_state_dict_post_hook(hook)",
    "m.register_load_state_dict_pre_hook(hook)",
    "m.register_load_state_dict_post_hook(hook)",
    "leaf.register_hook(hook)",
    "leaf.register_post_accumulate_grad_hook(hook)",
    "(leaf * 2).grad_fn.register_hook(hook)",
    "(leaf * 2).grad_fn.register_prehook(hook)",
)


@pytest.mark.torch
@pytest.mark.parametrize("registration", REGISTERED)
def test_a_removed_hook_leaves_nothing_behind(registration):
    compare(
        f"{HANDLES}see(NAMES, [type(getattr(m, name)).__name__ for name in NAMES])\nattempt(lambda: seen({registration}))"
    )


@pytest.mark.torch
def test_the_hooks_of_a_tensor_by_their_handles():
    compare(
        HANDLES
        + """
see(leaf._backward_hooks, leaf._post_accumulate_grad_hooks)
one, other = leaf.register_hook(hook), leaf.register_post_accumulate_grad_hook(hook)
see(list(leaf._backward_hooks) == [one.id], list(leaf._post_accumulate_grad_hooks) == [other.id])
one.remove(), other.remove()
see(len(leaf._backward_hooks), len(leaf._post_accumulate_grad_hooks))
attempt(lambda: m.register_forward_hook())
attempt(lambda: m.register_forward_hook(hook, True))
"""
    )
