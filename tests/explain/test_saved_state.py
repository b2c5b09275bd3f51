"""A state that was saved without a copy and restored onto itself, and states that are restored in earnest."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
"""


def program(save, restore, at=1):
    return f"""{HEAD}
for epoch in range(4):
    net.train()
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch == {at}:
        {save}
{restore}
net.eval()
with torch.no_grad():
    net(x)
"""


BY_REFERENCE = {
    "a state": ("best = net.state_dict()  #!", "net.load_state_dict(best)", "value.clone()"),
    "a state in a checkpoint": (
        'kept = {"net": net.state_dict(), "epoch": epoch}  #!', 'net.load_state_dict(kept["net"])', "value.clone()"),
    "a dictionary of the tensors themselves": (
        "best = {k: v for k, v in net.state_dict().items()}  #!", "net.load_state_dict(best)", "clone"),
    "a shallow copy": ("best = dict(net.state_dict())  #!", "net.load_state_dict(best)", "dict({key: value.clone()"),
    "detached parameters": (
        "best = [p.detach() for p in net.parameters()]  #!",
        "with torch.no_grad():\n    for p, kept in zip(net.parameters(), best):\n        p.copy_(kept)", ".clone()"),
}  # fmt: skip
COPIES = {
    "a deep copy": ("best = copy.deepcopy(net.state_dict())", "net.load_state_dict(best)"),
    "clones": ("best = {k: v.clone() for k, v in net.state_dict().items()}", "net.load_state_dict(best)"),
    "another model": (
        "b = copy.deepcopy(net); b.load_state_dict(net.state_dict())", "net.load_state_dict(b.state_dict())"),
    "a state loaded at once": ("net.load_state_dict(net.state_dict())", "net.load_state_dict(net.state_dict())"),
    "a part of a state of tied weights": (
        "net[0].bias = net[1].bias; sd = net.state_dict()\n"
        "        sd.update({'3.bias': torch.ones(1)}); net.load_state_dict(sd)", ""),
    "a state that is only read": ("best = net.state_dict()", 'print(best["0.bias"].sum())'),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BY_REFERENCE)
def test_a_state_without_copies_is_found_and_mended(name, engine, checks):
    save, restore, changed = BY_REFERENCE[name]
    text = program(save, restore)
    found = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert {(one.finding.kind, one.level) for one in found} == {("saved-by-reference", "error")}
    assert len(found) == 1
    said = "\n".join(row for _, row, _ in lines(found[0].finding))
    assert "2 later writes changed it, too" in said
    assert ("copy.deepcopy(net.state_dict())" in said) is ("net.state_dict()" in save)
    assert text.splitlines()[found[0].finding.at.line - 1].endswith("#!")
    edit = found[0].finding.edit
    assert edit is not None
    assert changed in edit.new
    assert [str(other) for other in checks.of_text(edit.applied(text), engine).found if other.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COPIES)
def test_a_state_with_copies_is_not_reported(name, engine, checks):
    assert [str(one) for one in checks.of_text(program(*COPIES[name]), engine).found if one.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_that_nothing_changed_since_is_not_reported(engine, checks):
    text = program("best = net.state_dict()", "net.load_state_dict(best)", at=3)
    assert [str(one) for one in checks.of_text(text, engine).found if one.level != "note"] == []
