"""Steps that the program undoes before the next one, and programs that write to parameters for another reason."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(32, 6), torch.randn(32, 2)
"""
LAYER = """
def quant(w):
    return torch.clamp(torch.round(w / 0.125), -8, 7) * 0.125


class Layer(nn.Linear):
    def forward(self, x):
        ROUND
        return F.linear(x, self.weight, self.bias)


net = nn.Sequential(Layer(6, 8), nn.ReLU(), Layer(8, 2))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(12):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
NET = """
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
other = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.02)
BEFORE
for epoch in range(12):
    FIRST
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    AFTER
"""


def layer(text):
    return HEAD + LAYER.replace("ROUND", text)


def net(before="pass", first="pass", after="pass"):
    text = NET.replace("BEFORE", before)
    for word, value in (("FIRST", first), ("AFTER", after)):
        text = text.replace(word, value.replace("\n", "\n    "))
    return HEAD + text


UNDONE = {
    "a weight that is rounded in forward": (
        layer("self.weight.data = quant(self.weight.data)  #!"),
        "weight = self.weight + (quant(self.weight) - self.weight).detach()"),
    "a weight that is rounded in place": (
        layer("with torch.no_grad():\n            self.weight.copy_(quant(self.weight))  #!"), ""),
    "a sign": (layer("self.weight.data = torch.sign(self.weight.data)  #!"), "torch.sign(self.weight)"),
    "rounded after each step": (
        net("for p in net.parameters():\n    p.data = torch.round(p.data * 4) / 4",
            after="with torch.no_grad():\n    for p in net.parameters():\n        p.copy_(torch.round(p * 4) / 4)  #!"),
        ""),
    "a copy in the wrong direction": (net(first="net.load_state_dict(other.state_dict())  #!"), ""),
    "parameters that are kept and restored": (
        net("kept = [p.detach().clone() for p in net.parameters()]",
            after="for p, k in zip(net.parameters(), kept):\n    p.data.copy_(k)  #!"), ""),
}  # fmt: skip
SAM = """with torch.no_grad():
    old = [p.clone() for p in net.parameters()]
    for p in net.parameters():
        p.add_(0.05 * torch.sign(p))
perturbed = F.mse_loss(net(x), y)
net.zero_grad()
perturbed.backward()
with torch.no_grad():
    for p, o in zip(net.parameters(), old):
        p.copy_(o)"""
NOT_UNDONE = {
    "rounded in a copy": layer("return F.linear(x, self.weight + (quant(self.weight) - self.weight).detach())"),
    "perturbed and restored around a step": net(first=SAM),
    "clipped": net(after="for p in net.parameters():\n    p.data.clamp_(-0.2, 0.2)"),
    "clipped until all elements are at the limit": net(
        after="for p in net.parameters():\n    p.data.clamp_(-0.002, 0.002)"),
    "the best weights are restored once": net(
        "best = copy.deepcopy(net.state_dict())", after="if epoch == 6:\n    net.load_state_dict(best)"),
    "a target network": net(after="other.load_state_dict(net.state_dict())"),
    "lookahead": net(
        after="if epoch % 2:\n    with torch.no_grad():\n"
              "        for p, q in zip(net.parameters(), other.parameters()):\n"
              "            q.add_(0.5 * (p - q))\n            p.copy_(q)"),
    "averages that are swapped in": net(
        after="with torch.no_grad():\n    for p, q in zip(net.parameters(), other.parameters()):\n"
              "        q.mul_(0.9).add_(0.1 * p)\n    kept = copy.deepcopy(net.state_dict())\n"
              "    net.load_state_dict(other.state_dict())\n    F.mse_loss(net(x), y)\n    net.load_state_dict(kept)"),
    "normalized in place": net(
        after="with torch.no_grad():\n    for p in net.parameters():\n        p.div_(p.norm())"),
    "adapted to each sample": net(
        "kept = copy.deepcopy(net.state_dict())", first="net.load_state_dict(kept)",
        after="with torch.no_grad():\n    print(net(x[:1]).sum().item())"),
    "first-order meta-learning": net(
        "kept = copy.deepcopy(net.state_dict())",
        after="F.mse_loss(net(x), y).backward()\nnet.load_state_dict(kept)"),
    "a part is restored": net(
        "kept = net[0].weight.detach().clone()", after="net[0].weight.data[:4] = kept[:4]"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", UNDONE)
def test_a_step_that_is_undone_is_found(name, engine, checks):
    text, mended = UNDONE[name]
    all_found = checks.of_text(text, engine).found
    assert [str(each) for each in all_found if each.level != "note"] == []
    found = [each for each in all_found if each.finding.kind == "undone-steps"]
    (one,) = found
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "gets its old numbers back after 11 of 12 steps" in said
    assert "the program wrote the numbers from before the step" in said
    if not mended:
        assert one.finding.edit is None
        return
    assert mended in one.finding.edit.new
    again = checks.of_text(one.finding.edit.applied(text), engine).found
    assert [str(each) for each in again if each.level != "note" or each.finding.kind == "undone-steps"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NOT_UNDONE)
def test_a_parameter_that_is_written_for_another_reason_is_not_reported(name, engine, checks):
    found = checks.of_text(NOT_UNDONE[name], engine).found
    assert "undone-steps" not in {one.finding.kind for one in found}
