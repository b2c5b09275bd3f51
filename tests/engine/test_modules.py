"""Modules, against PyTorch: what they register, print, save and compute."""

import pytest
from twin import compare

FILL = """
import torch.nn.functional as F
from torch import nn
def fill(module):
    "The same numbers in both frameworks, whose random streams differ."
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_((torch.arange(float(p.numel())).view(p.shape) + i) / 10 - 0.35)
    return module
"""

PROGRAMS = {
    "printing": """
print(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 1, bias=False), nn.Sigmoid())))
print(nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Tanh()]), nn.ModuleList())
print(nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Flatten()}), nn.MSELoss(), nn.ReLU(inplace=True), nn.Identity())
print(nn.Sequential(), nn.ModuleList([nn.Sequential(nn.Tanh(), nn.Tanh())] * 3))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 3); self.scale = nn.Parameter(torch.ones(1)); self.later = None
        self.register_buffer("mean", torch.zeros(2))
    def extra_repr(self): return "one\\ntwo"
print(Net())
""",
    "registration": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 3); self.fc2 = nn.Linear(3, 1); self.shared = self.fc1
        self.scale = nn.Parameter(torch.ones(1)); self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("skipped", torch.zeros(1), persistent=False); self.register_parameter("none", None)
        self.items = [nn.Linear(1, 1)]
    def forward(self, x): return self.fc2(self.fc1(x).relu()) * self.scale
net = Net()
see([n for n, _ in net.named_parameters()], [n for n, _ in net.named_modules()], [n for n, _ in net.named_children()])
see([n for n, _ in net.named_buffers()], list(net.state_dict()), len(list(net.modules())), net.none)
see([n for n, _ in net.named_parameters(recurse=False)], net.fc1.weight.requires_grad, net.get_parameter("fc1.bias").shape)
def assign(name, value): setattr(net, name, value)
attempt(lambda: net.missing); attempt(lambda: assign("scale", 3.)); attempt(lambda: assign("scale", torch.ones(1)))
attempt(lambda: net.register_parameter("a.b", None))
class Bad(nn.Module):
    def __init__(self): self.fc = nn.Linear(1, 1)
attempt(Bad)
class Worse(nn.Module):
    def __init__(self): self.p = nn.Parameter(torch.ones(1))
attempt(Worse)
attempt(lambda: nn.Module()(1))
del net.fc2; see([n for n, _ in net.named_parameters()])
net.fc1 = nn.Linear(2, 2); net.scale = None; see([n for n, _ in net.named_parameters()], net.training, net.eval().fc1.training)
net.train(); see(net.training); net.requires_grad_(False); see([p.requires_grad for p in net.parameters()])
net.mean = torch.ones(2); see(list(net.state_dict()))
seen = []; net.apply(lambda m: seen.append(type(m).__name__)); see(seen)
net.double(); see([str(p.dtype) for p in net.parameters()], str(net.mean.dtype)); net.float(); net.to(torch.float64); see(str(net.mean.dtype))
""",
    "containers": """
s = nn.Sequential(nn.Linear(1, 2), nn.Tanh(), nn.Linear(2, 1))
see(len(s), type(s[0]).__name__, type(s[-1]).__name__, len(s[:2]), [type(m).__name__ for m in s]); attempt(lambda: s[3])
s[1] = nn.ReLU(); s.append(nn.Tanh()); del s[0]; print(s)
l = nn.ModuleList([nn.Tanh()]); l.append(nn.ReLU()); l.extend([nn.Sigmoid()]); l.insert(0, nn.Identity()); print(l, l[1:])
d = nn.ModuleDict({"a": nn.Tanh()}); d["b"] = nn.ReLU(); del d["a"]; see(list(d), "b" in d, len(d)); print(d)
from collections import OrderedDict
print(nn.Sequential(OrderedDict([("first", nn.Linear(1, 1)), ("second", nn.Tanh())])).first)
""",
    "containers to the full": """
from collections import OrderedDict
s = nn.Sequential(OrderedDict(a=nn.Tanh(), b=nn.ReLU(), c=nn.Sigmoid())); print(s[1:], s[-1], s + nn.Sequential(nn.Tanh()), s * 2, 2 * nn.Sequential(nn.Tanh()))
print(s.pop(0), s); s.insert(1, nn.Tanh()); s.extend([nn.ReLU()]); s += nn.Sequential(nn.Tanh()); s *= 2; del s[1:3]; print(s)
for call in (lambda: s.insert(99, nn.Tanh()), lambda: s.append(3), lambda: nn.Sequential({"a": nn.Tanh()}), lambda: s[99], lambda: nn.Sequential(1)): attempt(call)
l = nn.ModuleList([nn.Tanh(), nn.ReLU(), nn.Linear(1, 1)]); l += [nn.Tanh()]; print(l + [nn.ReLU()], l.pop(1)); l[-1] = nn.Sigmoid(); del l[0]; print(l, list(l.state_dict())); del l[0:1]; print(l); attempt(lambda: l.extend(3)); attempt(lambda: l(1)); attempt(lambda: l[9])
d = nn.ModuleDict({"x": nn.Tanh()}); d.update([["y", nn.ReLU()]]); d.update(nn.ModuleDict({"z": nn.Tanh()})); print(d.pop("x"), d, list(d.keys()), list(d.items())[0][0], len(d.values())); d.clear(); print(d)
for call in (lambda: d.update(3), lambda: d.update([3]), lambda: d.update([[1, 2, 3]]), lambda: d["q"], lambda: d.update({"a.b": nn.Tanh()}), lambda: d.update({"": nn.Tanh()})): attempt(call)
""",
    "containers of parameters": """
p = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1, 3)), "text"]); print(p); see(len(p), [n for n, _ in p.named_parameters()], p[-1], [type(q).__name__ for q in p], len(p[:2]))
p.append(torch.ones(1)); p += [torch.ones(())]; p[0] = torch.zeros(2, 2); see(list(p.state_dict()), p[0]); attempt(lambda: p[9]); attempt(lambda: p.extend(torch.ones(2))); attempt(lambda: p(1)); attempt(lambda: p.extend(3))
d = nn.ParameterDict({"b": torch.ones(2), "a": torch.zeros(1), "n": 5}); print(d); see(list(d), list(d.keys()), "a" in d, len(d), d.get("q", 3), d["n"], list(d.state_dict()), [k for k, _ in d.items()], list(reversed(d)))
d["c"] = torch.ones(3); see(d.pop("a"), d.popitem()[0], d.setdefault("z", torch.ones(1)), list(d)); e = d | {"y": torch.ones(1)}; see(list(e), list(d.copy()), list(d.fromkeys(["u"], 1.).items())); del d["b"]; d.update([("q", torch.ones(1))]); print(d); d |= {"w": 1}; see(list(d)); d.clear(); see(len(d))
for call in (lambda: d(1), lambda: d["q"], lambda: d.update(3), lambda: d.update([3]), lambda: d.update([(1, 2, 3)]), lambda: d.update({3: torch.ones(1)})): attempt(call)
""",
    "the tree": """
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.a = nn.Sequential(nn.Linear(1, 2), nn.Tanh()); self.b = self.a[0]; self.register_buffer("m", torch.zeros(1)); self.n = nn.Buffer(torch.ones(2), persistent=False); self.t = 3
net = Net(); see([n for n, _ in net.named_modules(remove_duplicate=False)], [n for n, _ in net.named_parameters(remove_duplicate=False)], [n for n, _ in net.named_parameters("x")], [n for n, _ in net.named_buffers()], list(net.state_dict()), len(list(net.modules(remove_duplicate=False))))
see(type(net.get_submodule("a.0")).__name__, net.get_parameter("a.0.weight").shape, net.get_buffer("m"), net.get_submodule("") is net); net.set_submodule("a.1", nn.ReLU()); print(net)
for call in (lambda: net.get_submodule("a.9"), lambda: net.get_submodule("t"), lambda: net.get_parameter("m"), lambda: net.get_parameter("q"), lambda: net.get_buffer("t"), lambda: net.get_buffer("q"), lambda: net.set_submodule("", nn.ReLU()), lambda: net.set_submodule("a", 3), lambda: net.set_submodule("q", nn.ReLU(), strict=True), lambda: net.set_submodule("t", nn.ReLU())): attempt(call)
for call in (lambda: net.register_buffer("a", None), lambda: net.register_buffer("x.y", None), lambda: net.register_buffer("", None), lambda: net.register_buffer("w", 3), lambda: net.register_buffer(3, None), lambda: net.register_parameter("t", None), lambda: net.register_parameter("p", torch.ones(1)),
             lambda: net.register_parameter("p", nn.Parameter(torch.ones(1)) * 2), lambda: net.register_parameter(3, None), lambda: net.add_module("m", nn.Tanh()), lambda: net.add_module("q", 3), lambda: net.add_module(3, None), lambda: setattr(net, "a", 3), lambda: setattr(net, "m", 3), lambda: delattr(net, "zz"), lambda: net.train(3), lambda: net.to(torch.int64), lambda: net.cuda(), lambda: net.to('cuda'), lambda: nn.Linear(1, 1, device='cuda'), lambda: net.to('nonsense'), lambda: nn.Module(3), lambda: nn.Module(a=3)): attempt(call)
net.m = nn.Parameter(torch.ones(1)); see([n for n, _ in net.named_parameters()], [n for n, _ in net.named_buffers()]); net.m = None; del net.m; net.a = None; print(net); see("m" in dir(net), "0" in dir(nn.Sequential(nn.Tanh())))
class Own(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(2)); self.w.grad = torch.ones(2); self.register_buffer("i", torch.ones(2, dtype=torch.int64)); self.register_buffer("f", torch.ones(2))
o = Own(); w = o.w; o.double(); see(o.w is w, o.w, str(o.i.dtype), str(o.f.dtype), str(o.w.grad.dtype)); o.to(dtype=torch.float32, device="cpu"); o.half(); see(str(o.w.dtype)); o.to(torch.ones(1)); see(str(o.w.dtype)); o.type(torch.float64); see(str(o.i.dtype)); o._apply(lambda t: t * 2); see(o.w, o.f)
""",
    "forward and backward": """
net = fill(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2), nn.Sigmoid(), nn.Flatten(0)))
x = torch.arange(6.).view(2, 3) / 5
y = net(x); see(y)
loss = nn.MSELoss()(y, torch.ones(4)); see(loss); loss.backward(); see([p for p in net.parameters()])
net.zero_grad(); see([p.grad for p in net.parameters()])
net(x).sum().backward(); net.zero_grad(set_to_none=False); numbers(*[p.grad for p in net.parameters()])
for shape in ((3,), (4, 3), (2, 2, 3)):
    see(fill(nn.Linear(3, 2))(torch.ones(shape)))
    numbers(fill(nn.Linear(3, 2, bias=False))(torch.ones(shape)))
attempt(lambda: nn.Linear(3, 2)(torch.ones(2, 4))); attempt(lambda: nn.Linear(3, 2)(torch.ones(2, 3).double()))
see(F.relu(x - 0.5), F.mse_loss(x, x * 2), F.mse_loss(x, x * 2, reduction="sum"), F.mse_loss(x, x * 2, reduction="none"))
attempt(lambda: F.mse_loss(x, x, reduction="no"))
""",
    "state": """
a, b = fill(nn.Linear(2, 2)), nn.Linear(2, 2)
print(b.load_state_dict(a.state_dict())); see(b.weight, b.bias, a.state_dict())
attempt(lambda: b.load_state_dict({})); attempt(lambda: b.load_state_dict({**a.state_dict(), "more": torch.ones(1)}))
attempt(lambda: b.load_state_dict({"weight": torch.ones(3, 2), "bias": torch.ones(2)}))
print(b.load_state_dict({"weight": torch.ones(2, 2), "x": torch.ones(1)}, strict=False))
state = a.state_dict(); state["weight"].zero_(); see(a.weight)
import copy
c = copy.deepcopy(a); c.weight.data.fill_(9); numbers(a.weight, c.weight); see(type(c.weight).__name__)
p = nn.Parameter(torch.ones(2)); print(p, p.requires_grad, nn.Parameter(torch.ones(1), requires_grad=False))
see(isinstance(p, torch.Tensor), isinstance(p, nn.Parameter), isinstance(p * 1, nn.Parameter))
attempt(lambda: nn.Parameter(torch.ones(1, dtype=torch.int64)))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(FILL + PROGRAMS[name])
