"""Conditions in which a text stands alone, and those that are well formed."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 4), torch.randn(16, 2)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)
    def forward(self, x):
        return self.head(torch.tanh(self.norm(self.conv(x))))
net = Net()
SETUP
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOOP = "for name, module in net.named_modules():\n    if isinstance(module, nn.Linear):\n"
INIT = "            nn.init.normal_(module.weight, std=0.1)\n        else:\n            nn.init.zeros_(module.bias)"
ALWAYS = {
    "or in": (LOOP + "        if 'conv' or 'head' in name:  #!\n" + INIT, "if 'conv' in name or 'head' in name:"),
    "or in, last": (LOOP + "        if 'conv' in name or 'head':  #!\n" + INIT, "if 'conv' in name or 'head' in name:"),
    "equal": (
        LOOP + "        if name == 'conv' or 'head':  #!\n" + INIT, "if name == 'conv' or name == 'head':"),
    "three": (
        LOOP + "        if 'a' or 'b' or 'conv' in name:  #!\n" + INIT,
        "if 'a' in name or 'b' in name or 'conv' in name:",
    ),
    "apply": (
        "def init(m):\n    if 'Conv' or 'Linear' in type(m).__name__:  #!\n"
        "        if hasattr(m, 'bias'):\n            nn.init.zeros_(m.bias)\nnet.apply(init)",
        "if 'Conv' in type(m).__name__ or 'Linear' in type(m).__name__:",
    ),
    "part": (
        LOOP + "        if module.bias is not None and ('conv' or 'head' in name):  #!\n" + INIT,
        "('conv' in name or 'head' in name)",
    ),
    "comprehension": (
        "kept = [p for n, p in net.named_parameters() if 'bias' or 'norm' in n]  #!",
        "if 'bias' in n or 'norm' in n]",
    ),
    "conditional expression": (
        "rates = {}\nfor n, p in net.named_parameters():\n    rates[n] = 0.1 if 'bias' or 'norm' in n else 0.2  #!",
        "0.1 if 'bias' in n or 'norm' in n else",
    ),
    "frozen": (
        "for n, p in net.named_parameters():\n    if n.startswith('x') or 'y':  #!\n        p.requires_grad = True",
        "",
    ),
}  # fmt: skip
NO_EFFECT = {
    "and": (LOOP + "        if 'conv' and 'head' in name:  #!\n" + INIT, "if 'conv' in name and 'head' in name:"),
    "in": (LOOP + "        if ('conv' or 'head') in name:  #!\n" + INIT, "if ('conv' in name or 'head' in name):"),
}  # fmt: skip
FORMED = [
    LOOP + "        if 'conv' in name or 'head' in name:\n" + INIT,
    LOOP + "        if any(word in name for word in ('conv', 'head')):\n" + INIT,
    LOOP + "        if (name or 'conv') == 'conv':\n" + INIT,
    LOOP + "        if name == ('' or 'conv'):\n" + INIT,
    LOOP + "        if '' or 'conv' in name:\n" + INIT,
    LOOP + "        label = name or 'net'\n        if label:\n" + INIT,
    LOOP + "        if name.startswith('conv' or 'head'):\n" + INIT,
    "if 'debug' or x:\n    print('on')",
]


def line(text):
    return next(n for n, row in enumerate(text.splitlines(), 1) if row.endswith("#!"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ALWAYS)
def test_a_condition_that_a_lone_text_makes_true_is_found_and_mended(name, engine, checks):
    setup, new = ALWAYS[name]
    text = PROGRAM.replace("SETUP", setup)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = (one for one in outcome.found if one.finding.kind == "constant-condition")
    assert (one.level, one.finding.at.line) == ("warning", line(text))
    assert "always true" in one.finding.text
    assert len(one.finding.text) <= 80
    assert (one.finding.edit is not None) is bool(new)
    if new:
        mended = one.finding.edit.applied(text)
        assert new in mended
        assert "constant-condition" not in {other.finding.kind for other in checks.of_text(mended, engine).found}


@pytest.mark.parametrize("name", NO_EFFECT)
def test_a_text_without_effect_in_a_condition_is_found(name, checks):
    setup, new = NO_EFFECT[name]
    text = PROGRAM.replace("SETUP", setup)
    (one,) = (one for one in checks.of_text(text, "builtin").found if one.finding.kind == "constant-condition")
    assert (one.level, one.finding.at.line) == ("warning", line(text))
    assert "has no effect" in one.finding.text
    assert new in one.finding.edit.applied(text)


@pytest.mark.parametrize("setup", FORMED)
def test_a_well_formed_condition_is_not_found(setup, checks):
    found = checks.of_text(PROGRAM.replace("SETUP", setup), "builtin").found
    assert "constant-condition" not in {one.finding.kind for one in found}
