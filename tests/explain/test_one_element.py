"""Normalizations of one element, whose result is always the same, and normalizations of a few that are not."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(6, 2, 8, 8), torch.randint(0, 3, (6,))
conv, fc = nn.Conv2d(2, 16, 3, padding=1), nn.Linear(16, 3)
SETUP
norms = [one for one in globals().values() if isinstance(one, nn.Module) and one not in (conv, fc)]
opt = torch.optim.SGD([*nn.ModuleList([conv, fc, *norms]).parameters()], lr=0.1)
for epoch in range(3):
    h = F.relu(conv(x))
    NORM
    loss = F.cross_entropy(fc(h.reshape(6, 16)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def net(norm, setup=""):
    return HEAD.replace("NORM", norm.replace("\n", "\n    ")).replace("SETUP", setup)


POOL = "h = F.adaptive_avg_pool2d(h, 1)"
ONE = {
    "a group norm after pooling": (
        net(f"{POOL}\nh = norm(h)", "norm = nn.GroupNorm(16, 16)  #!"),
        ["always its bias", "(6,16,1,1)", "16 groups of 1 channel", "4 groups of 4 channels", "nn.GroupNorm(4, 16)"],
    ),
    "a group norm of features": (
        net("h = norm(h.mean((2, 3)))", "norm = nn.GroupNorm(num_channels=16, num_groups=16)  #!"),
        ["always its bias", "(6,16)", "num_groups=4"],
    ),
    "the function": (
        net("h = h.mean((2, 3))\nh = F.group_norm(h, 16)  #!"),
        ["always its bias", "16 groups", "F.group_norm(h, 4)"],
    ),
    "a layer norm of one feature": (
        net(f"{POOL}\nh = norm(h.view(6, 16, 1))  #!", "norm = nn.LayerNorm(1)"),
        ["always its bias", "(6,16,1)"],
    ),
    "a mean over one element by hand": (
        net("h = h.mean((2, 3)).unsqueeze(1)\nh = h - h.mean(1, keepdim=True)  #!"),
        ["always 0", "(6,1,16)", "a dimension of more elements"],
    ),
    "a line that makes layers before and after pooling": (
        net(f"{POOL.replace('h,', 'a(h),')}\nh = b(h)  #!", "a, b = [nn.GroupNorm(16, 16) for _ in range(2)]"),
        ["always its bias", "16 groups"],
    ),
    "a single feature divided by its norm": (
        net("h = h.mean((1, 2, 3)).unsqueeze(1)\nh = F.normalize(h).expand(6, 16)  #!"),
        ["always 1", "its own norm", "(6,1)"],
    ),
}
CHOICE = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Moe(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k, self.gate = k, nn.Linear(8, 4)
        self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
    def forward(self, x):
        scores = self.gate(x)
        WEIGHT
        rows = torch.stack([expert(x) for expert in self.experts], -2)
        rows = rows.gather(-2, index[..., None].expand(*index.shape, 8))
        return (rows * weight[..., None]).sum(-2)
net = Moe(K)
x, y = torch.randn(SHAPE, 8), torch.randn(SHAPE, 8)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(3):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def routed(weight, k=1, shape="12"):
    text = CHOICE.replace("WEIGHT", weight.replace("\n", "\n        "))
    return text.replace("K)", f"{k})").replace("SHAPE", shape)


TOPK = "weight, index = scores.softmax(-1).topk(self.k, dim=-1)"
ONE |= {
    "the weight of one expert by its sum": (
        routed(f"{TOPK}\nweight = weight / (weight.sum(-1, keepdim=True) + 1e-20)  #!"),
        ["always 1", "its own sum", "top_k = 1"],
    ),
    "the same in place, of a sequence": (
        routed(f"{TOPK}\nweight /= weight.sum(dim=-1, keepdim=True)  #!", shape="2, 6"),
        ["always 1", "its own sum", "(2,6,1)"],
    ),
    "a softmax of one score of a sequence": (
        routed("weight, index = torch.topk(scores, self.k)\nweight = weight.softmax(-1)  #!", shape="2, 6"),
        ["always 1", "top_k = 1"],
    ),
    "a maximum times one by its sum": (
        routed(
            "weight, index = scores.sigmoid().max(-1, keepdim=True)\n"
            "weight = weight * (1 / weight.sum(-1).unsqueeze(-1))  #!"
        ),
        ["always 1", "its own sum"],
    ),
}
HEALTHY = {
    "the weights of two experts by their sum": routed(f"{TOPK}\nweight = weight / weight.sum(-1, keepdim=True)", 2),
    "the weight of one expert as it is": routed(TOPK),
    "one expert in one of two calls": routed(
        f"{TOPK}\nself.k = 3 - self.k\nweight = weight / weight.sum(-1, keepdim=True)", 2
    ),
    "a straight-through weight": routed(f"{TOPK}\nweight = weight / weight.detach().sum(-1, keepdim=True)"),
    "the sign of a score": routed(f"{TOPK}\nweight = weight * (scores[:, :1] / scores[:, :1].abs()).detach()"),
    "the direction of weights with one input": net(
        "h = (h + norm.g * (norm.v / norm.v.norm(dim=1, keepdim=True)).view(16, 1, 1)).mean((2, 3))",
        "norm = nn.Module()\nnorm.v, norm.g = nn.Parameter(torch.ones(16, 1)), nn.Parameter(torch.ones(16, 1, 1))",
    ),
    "a group norm before pooling": net(f"h = norm(h)\n{POOL}", "norm = nn.GroupNorm(16, 16)"),
    "groups of two channels": net(f"{POOL}\nh = norm(h)", "norm = nn.GroupNorm(8, 16)"),
    "one group": net(f"{POOL}\nh = norm(h)", "norm = nn.GroupNorm(1, 16)"),
    "a layer norm of features": net("h = norm(h.mean((2, 3)))", "norm = nn.LayerNorm(16)"),
    "a mean over rows": net("h = h.mean((2, 3))\nh = h - h.mean(1, keepdim=True)"),
    "an instance norm": net("h = norm(h).amax((2, 3))", "norm = nn.InstanceNorm2d(16)"),
    "a batch norm of features": net("h = norm(h.mean((2, 3)))", "norm = nn.BatchNorm1d(16)"),
}


def of_one(text, engine, checks):
    return [one for one in checks.of_text(text, engine).found if one.finding.kind == "one-element"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ONE)
def test_a_normalization_of_one_element_is_found(name, engine, checks):
    text, words = ONE[name]
    (one,) = of_one(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    said += one.finding.edit.new if one.finding.edit is not None else ""
    assert one.level == "warning"
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    if one.finding.edit is not None:
        assert of_one(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_an_edit_changes_only_layers_that_normalize_one_element(engine, checks):
    text = ONE["a line that makes layers before and after pooling"][0]
    assert of_one(text, engine, checks)[0].finding.edit is None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_normalization_of_several_elements_is_not_reported(name, engine, checks):
    found = checks.of_text(HEALTHY[name], engine).found
    assert [str(one) for one in found if one.level != "note"] == []
