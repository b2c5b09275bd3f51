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
}
HEALTHY = {
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
