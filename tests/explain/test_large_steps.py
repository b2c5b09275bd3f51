"""Learning rates and first weights that are so large that numbers become inf, each with the line that sets them."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
LOOP = """
x = torch.randn(32, 4)
y = x[:, :1] - x[:, 1:2]
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
OPTIMIZER
for step in range(STEPS):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    STEP
"""


def program(optimizer, steps=20, step="opt.step()"):
    return HEAD + LOOP.replace("OPTIMIZER", optimizer).replace("STEPS", str(steps)).replace("STEP", step)


def findings(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return {one.finding.kind: one for one in outcome.found}


def underlined(text, at):
    return text.splitlines()[at.line - 1].encode()[at.column : at.end_column].decode()


LARGE = {
    "with momentum": ("opt = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.9)", "lr=1.5", "SGD at lr 1.5"),
    "by position": ("opt = torch.optim.SGD(net.parameters(), 50.0)", "50.0", "SGD at lr 50"),
    "a constant": ("LR = 20\nopt = torch.optim.SGD(net.parameters(), lr=LR)", "lr=LR", "SGD at lr 20"),
    "a group": ('opt = torch.optim.SGD([{"params": net.parameters(), "lr": 9.0}])', "9.0", "SGD at lr 9"),
    "adaptive": ("opt = torch.optim.Adam(net.parameters(), lr=1e13)", "lr=1e13", "Adam at lr 1e+13"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LARGE)
def test_a_rate_that_makes_parameters_grow_to_inf_is_named_where_it_is_set(name, engine, checks):
    optimizer, rate, words = LARGE[name]
    text = program(optimizer)
    found = findings(text, engine, checks)
    assert [*found] == ["large-steps"]
    one = found["large-steps"]
    assert one.level == "error"
    assert underlined(text, one.finding.at) == rate
    assert one.finding.text == f"training diverges: the steps of {words} are too large"
    assert "rms of" in one.finding.parts[0].text
    assert " at program.py:" in one.finding.parts[0].text or "; the loss " in one.finding.parts[0].text


@pytest.mark.parametrize("engine", ENGINES)
def test_the_optimizer_whose_steps_are_too_large_is_named_among_several(engine, checks):
    text = program(
        "other = torch.optim.SGD(net[0].parameters(), lr=0.01)\nopt = torch.optim.SGD(net[2].parameters(), lr=1e7)",
        step="opt.step()\n    other.step()",
    ).replace("opt.zero_grad()", "net.zero_grad()")
    one = findings(text, engine, checks)["large-steps"]
    assert underlined(text, one.finding.at) == "lr=1e7"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_divergence_that_is_still_finite_names_the_rate_too(engine, checks):
    text = HEAD + LOOP.replace("OPTIMIZER", "opt = torch.optim.SGD(net.parameters(), lr=0.9)").replace("STEPS", "10")
    text = text.replace("STEP", "opt.step()").replace(", nn.ReLU()", "")
    found = findings(text, engine, checks)
    assert "large-steps" in found or underlined(text, found["diverging"].finding.at) == "lr=0.9"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before", ["", "unused = (0 * x).log()\n"])
def test_a_divergence_that_ends_with_dead_units_names_the_rate(before, engine, checks):
    text = program(f"{before}opt = torch.optim.SGD(net.parameters(), lr=0.8)\nx, y = 3 * x, 3 * y")
    found = findings(text, engine, checks)
    assert underlined(text, found["large-steps"].finding.at) == "lr=0.8"
    assert "; the loss " in found["large-steps"].finding.parts[0].text


LINE = """
x = torch.randn(32, 4)
y = BASE + x[:, :1]
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(STEPS):
    loss = F.mse_loss(net(x), y) + MORE
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def line(base=50, steps=20, more="0.0"):
    return HEAD + LINE.replace("BASE", str(base)).replace("STEPS", str(steps)).replace("MORE", more)


OF_ANOTHER_REASON = {
    "a rate that works": program("opt = torch.optim.SGD(net.parameters(), lr=0.05)"),
    "a sample with nan after steps that worked": line(more="net(x * (float('nan') if step == 16 else 1)).mean()"),
    "a logarithm of 0 after steps that worked": line(more="(0.0 if step < 15 else (0 * net(x)).mean().log())"),
    "a target that grows up to inf": line(steps=500).replace("net(x), y)", "net(x), 1.1**step * y)"),
    "a target that becomes larger": line(0).replace("net(x), y)", "net(x), (1 if step < 8 else 1000) * y)"),
    "large targets": line(1e7),
    "an undefined logarithm": program("opt = torch.optim.SGD(net.parameters(), lr=0.05)").replace(
        "F.mse_loss(net(x), y)", "(net(x) - y).pow(2).mean() + (0 * net(x)).log().mean()"
    ),
    "gradients that add up": program("opt = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.9)").replace(
        "    opt.zero_grad()\n", ""
    ),
    "a rate that rises": program(
        "opt = torch.optim.SGD(net.parameters(), lr=0.01)",
        step="opt.step()\n    opt.param_groups[0]['lr'] *= 5",
    ),
    "an objective that is maximized": program("opt = torch.optim.SGD(net.parameters(), lr=1.5, maximize=True)"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OF_ANOTHER_REASON)
def test_other_reasons_of_a_nan_are_no_learning_rate(name, engine, checks):
    assert "large-steps" not in findings(OF_ANOTHER_REASON[name], engine, checks)


OF_LARGE_DATA = {
    "in two steps": program("opt = torch.optim.SGD(net.parameters(), lr=0.1)\nx = 900 * x"),
    "in more steps": line().replace("y = 50", "x = 300 * x\ny = 50"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OF_LARGE_DATA)
def test_a_rate_that_is_too_large_for_large_data_asks_for_standardized_data(name, engine, checks):
    text = OF_LARGE_DATA[name]
    found = findings(text, engine, checks)
    assert [*found] == ["large-steps"]
    one = found["large-steps"].finding
    assert underlined(text, one.at) == "lr=0.1"
    assert one.text == "training diverges: lr 0.1 of SGD is too large for such large data"
    assert "goes into" in one.parts[1].text
    assert one.fix.startswith("standardize the data")


# First weights

DEEP = """
x, y = SIZE * torch.randn(64, 12), torch.randint(0, 3, (64,))
net = nn.Sequential(
    nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3),
)
for m in net.modules():
    if isinstance(m, nn.Linear):
        WRITE  #!
        nn.init.zeros_(m.bias)
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for step in range(6):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CONV = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3 if i == 0 else 16, 16, 3, padding=1) for i in range(6)])
        self.head = nn.Linear(16, 3)
        self.apply(self.start)
    def start(self, m):
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            WRITE  #!
    def forward(self, x):
        for conv in self.convs:
            x = torch.relu(conv(x))
        return self.head(x.mean((2, 3)))
net = Net()
x, y = torch.randn(8, 3, 6, 6), torch.randint(0, 3, (8,))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MATRICES = """
x, y = torch.randn(64, 12), torch.randint(0, 3, (64,))
w1, w2, w3 = [torch.randn(a, b, requires_grad=True) for a, b in ((12, 64), (64, 64), (64, 3))]  #!
opt = torch.optim.SGD([w1, w2, w3], lr=0.1)
for step in range(4):
    loss = F.cross_entropy(torch.relu(torch.relu(x @ w1) @ w2) @ w3, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TOO_LARGE = {
    "normal_ of data": DEEP.replace("WRITE", "m.weight.data.normal_(0.0, 1.0)"),
    "init.normal_": DEEP.replace("WRITE", "nn.init.normal_(m.weight)"),
    "a factor": DEEP.replace("WRITE", "m.weight.data.mul_(10)"),
    "drawn anew": DEEP.replace("WRITE", "m.weight.data = torch.randn_like(m.weight)"),
    "convolutions": CONV.replace("WRITE", "nn.init.uniform_(m.weight, -1, 1)"),
    "matrices": MATRICES,
}


def line_of(text):
    (line,) = [nr for nr, row in enumerate(text.splitlines(), 1) if row.endswith("#!")]
    return line


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TOO_LARGE)
def test_first_weights_that_are_too_large_are_named_where_they_are_drawn(name, engine, checks):
    text = HEAD + TOO_LARGE[name].replace("SIZE", "1")
    found = findings(text, engine, checks)
    one = found["large-start"].finding
    assert one.at.line == line_of(text)
    said = "\n".join(row for _, row, _ in lines(one))
    assert ("fan_in 144: " if name == "convolutions" else " with fan_in ") in said
    assert "the first loss is" in said
    assert "log(3) is 1.1" in said
    assert not {"nan-born", "nan-born-backward", "exploding", "large-steps", "diverging"} & found.keys()


REGRESSION = DEEP.replace("F.cross_entropy(net(x), y)", "F.mse_loss(net(x)[:, 0], x[:, 0])").replace(
    "WRITE", "nn.init.normal_(m.weight, std=0.6)"
)
SCORES = """
x, y = torch.randn(64, 64), torch.randint(0, 3, (64,))
net = nn.Linear(64, 3)
nn.init.normal_(net.weight, std=STD)  #!
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(3):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_first_weights_that_are_somewhat_too_large_are_the_reason_of_a_nan(engine, checks):
    text = HEAD + REGRESSION.replace("SIZE", "1")
    one = findings(text, engine, checks)["large-start"]
    assert one.level == "warning"
    assert one.finding.at.line == line_of(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_large_first_scores_of_a_classifier_are_a_note(engine, checks):
    text = HEAD + SCORES.replace("STD", "3.0")
    one = findings(text, engine, checks)["large-start"]
    assert one.level == "note"
    assert one.finding.at.line == line_of(text)


ORDINARY = {
    "kaiming": DEEP.replace("WRITE", "nn.init.kaiming_normal_(m.weight)").replace("SIZE", "1"),
    "xavier": DEEP.replace("WRITE", "nn.init.xavier_uniform_(m.weight)").replace("SIZE", "1"),
    "small": DEEP.replace("WRITE", "nn.init.normal_(m.weight, std=0.02)").replace("SIZE", "1"),
    "large inputs": DEEP.replace("WRITE", "nn.init.kaiming_normal_(m.weight)").replace("SIZE", "5000"),
    "convolutions": CONV.replace("WRITE", "nn.init.kaiming_normal_(m.weight)"),
    "scaled results": MATRICES.replace("x @ w1)", "x @ w1 / 12**0.5)")
    .replace("@ w2)", "@ w2 / 8)")
    .replace("@ w3,", "@ w3 / 8,"),
    "large targets": program("opt = torch.optim.SGD(net.parameters(), lr=0.0001)\ny = 1e4 * y", 5),
    "a single pass": DEEP.replace("WRITE", "nn.init.normal_(m.weight)").replace("SIZE", "1").replace("(6)", "(1)"),
    "somewhat large weights that do no harm": REGRESSION.replace("SIZE", "1").replace("lr=0.02", "lr=1e-9"),
    "scores of weights that are not drawn": SCORES.replace(
        "nn.init.normal_(net.weight, std=STD)", "net.weight.data.copy_(3 * torch.arange(192.0).sin().view(3, 64))"
    ),
    "somewhat large scores": SCORES.replace("STD", "1.2"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_first_weights_are_no_finding(name, engine, checks):
    assert "large-start" not in findings(HEAD + ORDINARY[name], engine, checks)
