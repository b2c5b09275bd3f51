"""The lines that set the first numbers of parameters: zeros, a constant, and a copy in the place of a tie."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
NET = """
x, y = torch.randn(16, 3), torch.randint(0, 4, (16,))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 8)
        self.fc2 = nn.Linear(8, 4)
        IN_INIT
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))
net = Net()
SETUP
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(4):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
IN_A_FUNCTION = """
def init(m):
    if isinstance(m, nn.Conv2d):
        nn.init.zeros_(m.weight)
    if isinstance(m, nn.Linear):
        WRITE  #!
        nn.init.zeros_(m.bias)
net.apply(init)
"""
ZEROS = {
    "zeros_": IN_A_FUNCTION.replace("WRITE", "nn.init.zeros_(m.weight)"),
    "constant_": IN_A_FUNCTION.replace("WRITE", "nn.init.constant_(m.weight, 0.0)"),
    "fill_": IN_A_FUNCTION.replace("WRITE", "m.weight.data.fill_(0)"),
    "a loop over parameters": """
with torch.no_grad():
    for p in net.parameters():
        p.zero_()  #!
""",
    "a loop over names": """
for name, p in net.named_parameters():
    if "bias" in name:
        p.data.zero_()
    if "weight" in name:
        nn.init.constant_(p, 0)  #!
""",
    "a function that is passed the weight by its name": """
def clear(factor, /, *, of):
    with torch.no_grad():
        of.mul_(0)  #!
for layer in (net.fc1, net.fc2):
    clear(0, of=layer.weight)
    nn.init.zeros_(layer.bias)
""",
    "a method of another class": """
class Start:
    def clear(self, w):
        with torch.no_grad():
            w.mul_(0)  #!
for layer in (net.fc1, net.fc2):
    Start().clear(layer.weight)
    nn.init.zeros_(layer.bias)
""",
    "a function of one weight": """
def clear(w):
    with torch.no_grad():
        w.mul_(0)  #!
for layer in (net.fc1, net.fc2):
    clear(layer.weight)
    nn.init.zeros_(layer.bias)
""",
    "parameters made anew": """
for layer in (net.fc1, net.fc2):
    layer.weight = nn.Parameter(torch.zeros_like(layer.weight))  #!
    layer.bias.data.zero_()
""",
}


def line_of(text):
    (line,) = [nr for nr, row in enumerate(text.splitlines(), 1) if row.endswith("#!")]
    return line


def found_in(checks, engine, text, kind):
    return [one for one in checks.of_text(text, engine).found if one.finding.kind == kind]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ZEROS)
def test_zeros_are_found_where_they_are_written(name, engine, checks):
    text = HEAD + NET.replace("IN_INIT", "pass").replace("SETUP", ZEROS[name])
    (one,) = found_in(checks, engine, text, "masked")
    assert one.finding.at.line == line_of(text)
    assert "fc1.weight" in one.finding.text


@pytest.mark.parametrize("engine", ENGINES)
def test_zeros_of_one_layer_are_found_by_its_path(engine, checks):
    written = "self.fc1.weight.data = torch.zeros(8, 3)\n        self.fc1.bias.data = torch.zeros(8)"
    again = "self.fc2.weight.data = torch.zeros(4, 8)  #!\n        self.fc2.bias.data = torch.zeros(4)"
    text = HEAD + NET.replace("IN_INIT", f"{again}\n        {written}").replace("SETUP", "")
    (one,) = found_in(checks, engine, text, "masked")
    lines = {part.at.line for part in one.finding.parts if part.kind == "operand" and ".weight" in part.text}
    assert one.finding.at.line == line_of(text)
    assert lines == {line_of(text), line_of(text) + 2}


@pytest.mark.parametrize("engine", ENGINES)
def test_zeros_that_a_layer_is_made_with_are_found_where_it_is_made(engine, checks):
    zeros = "self.fc1.weight = nn.Parameter(torch.zeros(8, 3))  #!\n        nn.init.zeros_(self.fc1.bias)"
    zeros = f"{zeros}\n        self.fc2.weight = nn.Parameter(torch.zeros(4, 8))\n        nn.init.zeros_(self.fc2.bias)"
    text = HEAD + NET.replace("IN_INIT", zeros).replace("SETUP", "")
    (one,) = found_in(checks, engine, text, "masked")
    assert one.finding.at.line == line_of(text)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("write", ["m.weight.data[:] = 0.05", "m.weight.data = torch.full_like(m.weight, 0.05)"])
def test_a_constant_is_found_where_it_is_written(write, engine, checks):
    setup = IN_A_FUNCTION.replace("WRITE", write)
    text = HEAD + NET.replace("IN_INIT", "pass").replace("SETUP", setup)
    assert {one.finding.at.line for one in found_in(checks, engine, text, "same-units")} == {line_of(text)}


TIE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(6, 4)
        self.out = nn.Linear(4, 6, bias=False)
        IN_INIT
    def forward(self, i):
        return self.out(self.emb(i))
model = Model()
SETUP
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = F.cross_entropy(model(torch.randint(0, 6, (8,))), torch.randint(0, 6, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
COPIES = [
    ("self.out.weight.data.copy_(self.emb.weight.data)  #!", "", "note"),
    ("self.emb.weight.data.copy_(self.out.weight)  #!", "", "note"),
    ("self.out.weight.data.copy_(self.emb.weight)  # tie weights  #!", "", "warning"),
    ("self.out.weight = nn.Parameter(self.emb.weight.clone())  #!", "", "warning"),
    ("self.out.weight.data = self.emb.weight.data.clone()  #!", "", "warning"),
    ("self.out.load_state_dict(self.emb.state_dict())  #!", "", "warning"),
    ("pass", "def tie(a, b):\n    a.weight.data.copy_(b.weight.data)  #!\ntie(model.out, model.emb)", "warning"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("in_init", "setup", "level"), COPIES)
def test_a_copy_in_the_place_of_a_tie_is_found_where_it_is_made(in_init, setup, level, engine, checks):
    text = HEAD + TIE.replace("IN_INIT", in_init).replace("SETUP", setup)
    (one,) = found_in(checks, engine, text, "untied")
    assert (one.finding.at.line, one.level) == (line_of(text), level)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_weight_that_is_one_parameter_is_tied(engine, checks):
    text = HEAD + TIE.replace("IN_INIT", "self.out.weight = self.emb.weight").replace("SETUP", "")
    assert not found_in(checks, engine, text, "untied")


BROKEN_TIE = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
emb, out = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
out.weight = emb.weight
emb = copy.deepcopy(emb)  #!
opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
for step in range(2):
    ids = torch.randint(0, 5, (6,))
    loss = nn.functional.cross_entropy(out(emb(ids)), ids)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tie_that_a_copy_breaks_is_reported_at_the_copy(engine, checks):
    (one,) = [one for one in checks.of_text(BROKEN_TIE, engine).found if one.finding.kind == "untied"]
    assert BROKEN_TIE.splitlines()[one.finding.at.line - 1].endswith("#!")
