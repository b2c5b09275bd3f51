"""Recurrences whose gradients explode and are not clipped, and losses that become inf for other reasons."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(16, 30, 2), torch.randn(16, 1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        LAYERS
        self.out = nn.Linear(16, 1)
    def forward(self, x):
        STEPS
        return self.out(h)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(12):
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    CLIP
    opt.step()  #!
"""
MODULE = (
    "self.rnn = nn.RNN(2, 16, nonlinearity='relu', batch_first=True)\n        nn.init.eye_(self.rnn.weight_hh_l0)",
    "h = self.rnn(x)[0][:, -1]",
)
BY_HAND = (
    "self.w, self.v = nn.Linear(2, 16), nn.Linear(16, 16)\n        nn.init.eye_(self.v.weight)",
    "h = x.new_zeros(len(x), 16)\n        for t in range(x.shape[1]):\n"
    "            h = torch.relu(self.w(x[:, t]) + self.v(h))",
)
PLAIN = ("self.w = nn.Linear(60, 16)", "h = self.w(x.flatten(1))")


def program(layers, steps, clip="pass", rate="0.05"):
    text = PROGRAM.replace("LAYERS", layers).replace("STEPS", steps).replace("CLIP", clip)
    return text.replace("lr=0.05", f"lr={rate}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", [MODULE, BY_HAND], ids=["module", "by hand"])
def test_a_recurrence_without_clipping_is_named(model, engine, checks):
    text = program(*model)
    (one,) = [each for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.finding.kind == "nan-born"
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "comes from 30 time steps" in said or "comes from 29 time steps" in said
    assert text.splitlines()[one.finding.parts[0].at.line - 1].endswith("#!")
    assert "clip_grad_norm_" in one.finding.fix
    after = checks.of_text(one.finding.edit.applied(text), engine).found
    assert "error" not in {each.level for each in after}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        program(*PLAIN, rate="50.0").replace("range(12)", "range(40)"),
        program(*BY_HAND, clip="nn.utils.clip_grad_norm_(net.parameters(), 1e9)"),
    ],
    ids=["no recurrence", "a clip that is too wide"],
)
def test_other_losses_that_grow_are_explained_without_a_recurrence(text, engine, checks):
    found = [each for each in checks.of_text(text, engine).found if each.level == "error"]
    assert found
    said = "\n".join(row for one in found for _, row, _ in lines(one.finding))
    assert "time steps" not in said
