"""Buffers that are used as parameters, and those that are fixed on purpose or that the program updates."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import math
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        INIT
    def forward(self, x):
        FORWARD
model = nn.Sequential(nn.Linear(4, 4), Layer(), nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(3):
    loss = F.cross_entropy(model(torch.randn(6, 4)), torch.randint(0, 2, (6,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
RANDOM = 'self.register_buffer("mu", torch.randn(1, 4))  #!\nself.register_buffer("log_sigma", torch.randn(1, 4))  #!'
SAMPLE = "noise = torch.randn(6, 4)\nreturn x + self.fc(self.mu + self.log_sigma.exp() * noise)"
TOKEN = 'self.register_buffer("token", torch.zeros(1, 4))  #!\nnn.init.trunc_normal_(self.token, std=0.02)'
LEARNED = {
    "a sample": (RANDOM, SAMPLE),
    "a sample with half of the logarithm": (
        RANDOM, SAMPLE.replace("self.log_sigma.exp()", "(0.5 * self.log_sigma).exp()")),
    "a sample with a softplus": (RANDOM, SAMPLE.replace("self.log_sigma.exp()", "F.softplus(self.log_sigma)")),
    "a sample for each row": (
        RANDOM, "mu, scale = self.mu.expand(6, 4), torch.exp(self.log_sigma).expand(6, 4)\n"
        "return x + self.fc(mu + scale * torch.randn_like(mu))"),
    "a token by an imported function": (
        "from torch.nn.init import trunc_normal_\n" + TOKEN.replace("nn.init.", ""),
        "return self.fc(torch.cat([self.token, x]))[1:]"),
    "a token": (TOKEN, "return self.fc(torch.cat([self.token, x]))[1:]"),
    "a position": (
        'position = torch.empty(6, 4)\nnn.init.normal_(position)\nself.register_buffer("position", position)  #!',
        "return self.fc(x + self.position)"),
    "a table": (
        'self.register_buffer("table", nn.init.xavier_uniform_(torch.empty(9, 4)))  #!',
        "return self.fc(x) + F.embedding(torch.arange(6), self.table)"),
}  # fmt: skip
FIXED = {
    "random features": (
        'self.register_buffer("b", nn.init.normal_(torch.empty(4, 4)))\n'
        'self.register_buffer("phase", nn.init.uniform_(torch.empty(4), 0.0, 6.28))',
        "return self.fc(torch.cos(x @ self.b + self.phase))"),
    "features of data": (
        'self.register_buffer("b", nn.init.normal_(torch.empty(4, 4)))',
        "return self.fc(x) + torch.sin(torch.ones(6, 4) @ self.b)"),
    "a phase of data": (
        'self.register_buffer("phase", nn.init.uniform_(torch.empty(4), 0.0, 6.28))',
        "return self.fc(x) + torch.cos(torch.ones(6, 4) + self.phase)"),
    "noise that is added": (
        'self.register_buffer("noise", torch.randn(6, 4))\nnn.init.trunc_normal_(self.fc.weight, std=0.02)\n'
        "weight = torch.empty(4, 4)\nnn.init.normal_(weight)", "return self.fc(x + self.noise)"),
    "an identity": (
        'self.register_buffer("eye", nn.init.eye_(torch.empty(6, 4)))', "return self.fc(x + self.eye)"),
    "a target": (
        TOKEN, "with torch.no_grad():\n    goal = x + self.token\nreturn self.fc(x) - goal"),
    "a table of sines": (
        "t = torch.arange(6.0)[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])\n"
        'self.register_buffer("table", torch.sin(t))', "return self.fc(x + self.table)"),
    "a prior": (RANDOM.replace("torch.randn", "torch.zeros"), SAMPLE),
    "noise of a picture": (
        'self.register_buffer("noise", torch.randn(6, 4))\nself.strength = nn.Parameter(torch.zeros(1))',
        "return self.fc(x) + self.strength * self.noise"),
    "a mean that is updated": (
        TOKEN, "self.token.mul_(0.9).add_(0.1 * x.detach().mean(0, keepdim=True))\nreturn self.fc(x + self.token)"),
    "a moving scale": (
        RANDOM, "with torch.no_grad():\n    self.mu.lerp_(x.mean(0, keepdim=True), 0.1)\n"
        "    self.log_sigma.lerp_(x.std(0, keepdim=True).log(), 0.1)\n" + SAMPLE),
    "a random projection": (
        'self.register_buffer("p", nn.init.xavier_uniform_(torch.empty(4, 4)))', "return self.fc(x @ self.p)"),
    "a learned sample": (
        "self.mu, self.log_sigma = nn.Parameter(torch.randn(1, 4)), nn.Parameter(torch.randn(1, 4))", SAMPLE),
}  # fmt: skip


def program_of(init, forward):
    indent = "\n        "
    return PROGRAM.replace("INIT", init.replace("\n", indent)).replace("FORWARD", forward.replace("\n", indent))


def found(program, engine, checks):
    outcome = checks.of_text(program, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "unlearned-buffer"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LEARNED)
def test_a_buffer_that_is_used_as_a_parameter_is_found(name, engine, checks):
    program = program_of(*LEARNED[name])
    each = found(program, engine, checks)
    marked = [nr for nr, row in enumerate(program.splitlines(), 1) if row.endswith("#!")]
    assert sorted(one.finding.at.line for one in each) == marked
    assert {one.level for one in each} == {"note"}
    for one in each:
        mended = one.finding.edit.applied(program)
        assert len(found(mended, engine, checks)) < len(each)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FIXED)
def test_a_buffer_that_is_fixed_or_updated_is_not(name, engine, checks):
    assert found(program_of(*FIXED[name]), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_buffer_of_the_data_is_no_part_of_the_model(engine, checks):
    data = "class Data(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    data += "".join(f"        {row.removesuffix('  #!')}\n" for row in RANDOM.splitlines())
    data += "    def forward(self):\n        return self.mu + self.log_sigma.exp() * torch.randn(6, 4)\ndata = Data()\n"
    program = program_of("pass", "return self.fc(x)").replace("model = nn", f"{data}model = nn")
    assert found(program.replace("model(torch.randn(6, 4))", "model(data())"), engine, checks) == []
