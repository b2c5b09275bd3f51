"""Units that are off because the program made their weights tiny, and those that are off for another reason."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 64), torch.randn(16, 2)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 2)
    def forward(self, x):
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))
net = Net()
def init(m):
    SETUP
for m in net.modules():
    if isinstance(m, nn.Linear):
        init(m)
opt = torch.optim.SGD(net.parameters(), lr=0.001)
for epoch in range(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OFF = "nn.init.constant_(m.bias, -0.5)"
TINY = [
    f"nn.init.normal_(m.weight, std=0.001)  #!\n    {OFF}",
    f"nn.init.normal_(m.weight, 0.0, 1e-3)  #!\n    {OFF}",
    "m.weight.data.normal_(0, 0.001)  #!\n    m.bias.data.fill_(-0.5)",
    f"nn.init.uniform_(m.weight, -0.002, 0.002)  #!\n    {OFF}",
]
OTHER = ["nn.init.constant_(m.bias, -20.0)", "nn.init.xavier_uniform_(m.weight)\n    nn.init.constant_(m.bias, -20.0)"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("setup", TINY)
def test_dead_units_name_the_line_that_made_their_weights_tiny(setup, engine, checks):
    text = PROGRAM.replace("SETUP", setup)
    found = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "dead-units"]
    assert {one.at.line for one in found} == {next(n for n, row in enumerate(text.splitlines(), 1) if "#!" in row)}
    assert "1 / sqrt(fan_in)" in found[0].parts[0].text
    assert "kaiming_uniform_" in found[0].fix


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("setup", OTHER)
def test_units_with_ordinary_weights_are_off_for_another_reason(setup, engine, checks):
    text = PROGRAM.replace("SETUP", setup)
    found = [one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "dead-units"]
    assert found
    assert {one.at.line for one in found} == {12}
    assert not any("fan_in" in part.text for one in found for part in one.parts)
