"""State dicts, against PyTorch: what is in them, what loads, and the words for what does not."""

import pytest
from twin import compare

SETUP = """
from torch import nn
from collections import OrderedDict
def fill(module):
    with torch.no_grad():
        for i, p in enumerate([*module.parameters(), *module.buffers()]):
            p.copy_((torch.arange(float(p.numel())).view(p.shape) + i) / 10 - 0.35)
    return module
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2); self.again = self.fc; self.register_buffer("mean", torch.zeros(2)); self.none = None
        self.register_buffer("skipped", torch.ones(1), persistent=False); self.scale = nn.Parameter(torch.tensor(2.))
class Extra(nn.Module):
    def __init__(self): super().__init__(); self.seen = 3
    def get_extra_state(self): return self.seen
    def set_extra_state(self, state): self.seen = state
net = fill(Net())
"""

PROGRAMS = {
    "saving": """
s = net.state_dict(); see(s, type(s).__name__, dict(s._metadata)); see(net.state_dict(prefix="a.b."))
k = net.state_dict(keep_vars=True); see(k["fc.weight"] is net.fc.weight, s["fc.weight"].requires_grad)
d = OrderedDict(); see(net.state_dict(destination=d) is d, list(d)); see(list(net.state_dict(OrderedDict(), "x.")))
s["mean"].fill_(9); numbers(net.mean)
see(nn.Sequential(Extra(), nn.Linear(1, 1, bias=False)).state_dict()["0._extra_state"])
""",
    "loading": """
other = Net(); print(other.load_state_dict(net.state_dict())); see(other.state_dict())
attempt(lambda: other.load_state_dict({})); attempt(lambda: other.load_state_dict([1])); s = net.state_dict()
attempt(lambda: other.load_state_dict({**s, "more": torch.ones(1), "fc.x": torch.ones(1), "a.b": torch.ones(1)}))
del s["mean"]; s["fc.weight"] = torch.ones(3, 2); s["scale"] = torch.ones(1); s["fc.bias"] = 5; attempt(lambda: other.load_state_dict(s)); see(other.scale)
attempt(lambda: other.load_state_dict(s, strict=False)); s = net.state_dict(); del s["fc.weight"]; s["y"] = torch.ones(1)
r = other.load_state_dict(s, strict=False); print(r); see(r.missing_keys, r.unexpected_keys, r[0])
e = nn.Sequential(Extra()); see(e.load_state_dict({"0._extra_state": 8})); see(e[0].seen); attempt(lambda: e.load_state_dict({}))
attempt(lambda: nn.Linear(1, 1, bias=False).load_state_dict({"weight": torch.ones(1, 1), "_extra_state": 1}))
net.double(); other.load_state_dict(net.state_dict()); see(other.fc.weight)
""",
    "assigning": """
other = Net(); s = net.double().state_dict(); other.requires_grad_(False); other.load_state_dict(s, assign=True); see(other.state_dict())
see(other.fc.weight, type(other.fc.weight).__name__, other.mean is s["mean"]); s["scale"].fill_(7.); numbers(other.scale)
""",
    "hooks": """
a = net.register_state_dict_pre_hook(lambda m, prefix, keep: see("pre", type(m).__name__, prefix, keep))
b = net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop("mean") and None)
c = net.fc.register_state_dict_post_hook(lambda m, state, prefix, meta: see(sorted(state), prefix, meta))
see(list(net.state_dict())); b.remove(); c.remove()
net.register_state_dict_post_hook(lambda m, state, prefix, meta: 4); attempt(net.state_dict)
n = nn.Linear(1, 1); n._register_state_dict_hook(lambda m, state, prefix, meta: {"only": 1}); see(n.state_dict())
n = nn.Linear(1, 1); n.register_load_state_dict_pre_hook(lambda m, state, prefix, meta, strict, missing, unexpected, errors: (state.setdefault("bias", torch.ones(1)), see(type(m).__name__, strict, prefix)))
n.register_load_state_dict_post_hook(lambda m, keys: see("post", keys.missing_keys) or keys.missing_keys.clear())
n._register_load_state_dict_pre_hook(lambda *args: see(len(args)))
see(n.load_state_dict({"weight": torch.ones(1, 1)})); see(n.bias)
n.register_load_state_dict_post_hook(lambda m, keys: 1); attempt(lambda: n.load_state_dict({"weight": torch.ones(1, 1)}))
""",
    "copies and pickles": """
import copy, pickle
net.fc.weight.grad = torch.ones(2, 2); c = copy.deepcopy(net); numbers(*c.state_dict().values()); see(c.fc is c.again, c.fc.weight.grad, c.training, c.fc.weight._version)
c.fc.weight.data.fill_(3); numbers(net.fc.weight); n = nn.Sequential(nn.Linear(2, 1), nn.Tanh()).eval(); fill(n)
p = pickle.loads(pickle.dumps(n)); numbers(*p.state_dict().values()); see(p.training, type(p[0].weight).__name__, p[0].weight.requires_grad); print(p)
numbers(p(torch.ones(1, 2))); shallow = copy.copy(net); see(shallow.fc is net.fc)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(SETUP + PROGRAMS[name])
