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
