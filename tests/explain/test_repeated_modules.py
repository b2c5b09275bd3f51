"""One module in several places of a list: the line that repeats it, and the edit that makes several."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 3)
class Head(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc, self.out = nn.Linear(size, size), nn.Linear(size, 1)
    def forward(self, x):
        return self.out(torch.relu(self.fc(x)))
class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        INIT
    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], 1)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
REPEATED = {
    "a module": ("self.heads = nn.ModuleList([Head(4)] * n)  #!", "[Head(4) for _ in range(n)]"),
    "a number first": ("self.heads = nn.ModuleList(3 * [Head(4)])  #!", "[Head(4) for _ in range(3)]"),
    "several modules": (
        "self.heads = nn.ModuleList(\n    [nn.Sequential(*([nn.Linear(4, 4)] * 1), Head(4))] * n)  #!",
        "[nn.Sequential(*([nn.Linear(4, 4)] * 1), Head(4)) for _ in range(n)]",
    ),
    "a module made before": ("head = Head(4)\nself.heads = nn.ModuleList([head] * n)  #!", ""),
    "a module in a comprehension": ("head = Head(4)\nself.heads = nn.ModuleList([head for _ in range(n)])  #!", ""),
    "a list made before": (
        "heads = [Head(4)] * n  #!\nself.heads = nn.ModuleList(heads)",
        "[Head(4) for _ in range(n)]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REPEATED)
def test_a_module_that_is_repeated_is_noted_where_it_is_repeated(name, engine, checks):
    init, new = REPEATED[name]
    text = PROGRAM.replace("INIT", init.replace("\n", "\n        "))
    (one,) = checks.of_text(text, engine).found
    assert (one.level, one.finding.kind) == ("note", "shared")
    assert one.finding.at.line == next(n for n, row in enumerate(text.splitlines(), 1) if row.endswith("#!"))
    assert (one.finding.edit is not None) is bool(new)
    if new:
        mended = one.finding.edit.applied(text)
        assert new in mended
        assert [str(other) for other in checks.of_text(mended, engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_other_lists_are_not_taken_for_it(engine, checks):
    init = "sizes = [4] * n\nheads = [Head(4)]\nheads = heads + heads\nself.heads = nn.ModuleList(heads + heads[:1])"
    (one,) = checks.of_text(PROGRAM.replace("INIT", init.replace("\n", "\n        ")), engine).found
    assert one.finding.kind == "shared"
    assert one.finding.edit is None
