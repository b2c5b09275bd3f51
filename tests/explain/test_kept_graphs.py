"""Validations that keep their graphs from epoch to epoch, and lists of results that are right."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
def validate():
    VALIDATE
for epoch in range(4):
    for i in range(2):
        x = torch.randn(4, 3)
        loss = (net(x) - x[:, :1]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    EPOCH
"""


def kept(validate, epoch, engine, checks):
    text = PROGRAM.replace("VALIDATE", validate.replace("\n", "\n    ")).replace("EPOCH", epoch)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "graphs-kept"]


LOOP = "scores = []\nfor i in range(5):\n    x = torch.randn(4, 3)\n    "


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "line",
    [
        "scores.append((net(x) - 1).pow(2).mean())  #!",
        "score = (net(x) - 1).pow(2).mean()\n    scores.append(score)  #!",
    ],
)
def test_a_validation_that_keeps_its_graphs_is_found_in_few_epochs(line, engine, checks):
    text, (one,) = kept(f"{LOOP}{line}\nreturn scores", "history.extend(validate())", engine, checks)
    assert "15 graphs are alive at once" in one.finding.text
    assert "with torch.no_grad(): around it" in one.finding.fix
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert [each for each in after.found if each.finding.kind == "graphs-kept"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("line", "epoch"),
    [
        ("scores.append((net(x) - 1).pow(2).mean().item())", "history.extend(validate())"),
        ("with torch.no_grad(): scores.append((net(x) - 1).pow(2).mean())", "history.extend(validate())"),
        ("scores.append((net(x) - 1).pow(2).mean().detach())", "history.extend(validate())"),
        ("scores.append((net(x) - 1).pow(2).mean())", "history.append(sum(score.item() for score in validate()))"),
        ("scores.append((net(x) - 1).pow(2).mean())", "last = validate()"),
        ("scores.append((net(x) - 1).pow(2).mean())", "history.append(validate()[-1])"),
    ],
)
def test_numbers_and_lists_that_are_dropped_are_not(line, epoch, engine, checks):
    assert kept(f"{LOOP}{line}\nreturn scores", epoch, engine, checks)[1] == []


DELAYED = """
import torch
from torch import nn
torch.manual_seed(0)
actor, critic = nn.Linear(3, 2), nn.Linear(3, 1)
a_opt, c_opt = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (actor, critic))
for epoch in range(2):
    pending = []
    for i in range(6):
        x = torch.randn(4, 3)
        value = critic(x)
        pending.append(torch.log_softmax(actor(x), 1)[:, 0] * (x[:, 0] - value[:, 0]).detach())
        c_opt.zero_grad()
        (value - x[:, :1]).pow(2).mean().backward()
        c_opt.step()
    a_opt.zero_grad()
    loss = -torch.stack(pending).mean()
    loss.backward()
    a_opt.step()
    LAST
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("last", ["pass", "critic(x).pow(2).mean().backward(); c_opt.step()"])
def test_results_for_a_later_pass_are_not(last, engine, checks):
    outcome = checks.of_text(DELAYED.replace("LAST", last), engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.finding.kind == "graphs-kept"] == []


KEPT_BY_A_METHOD = """
import torch
from torch import nn
torch.manual_seed(0)
class Trainer:
    def __init__(self):
        self.net, self.errors = nn.Linear(3, 2), []
    def step(self, x):
        out = self.net(x)
        per_row = out.abs().mean(1)
        out.pow(2).mean().backward()
        self.errors.append(per_row)
trainer = Trainer()
for i in range(12):
    trainer.step(torch.randn(4, 3))
print(torch.cat(trainer.errors).max())
"""


SUMMED_BY_A_METER = """
import torch
from torch import nn
torch.manual_seed(0)
class Meter:
    def __init__(self):
        self.total = 0.0
    def update(self, value):
        self.total = self.total + value
net, meter = nn.Linear(3, 2), Meter()
for i in range(8):
    loss = net(torch.randn(4, 3)).pow(2).mean()
    loss.backward()
    meter.update(loss)
print(float(meter.total))
"""

KEEPING = [
    (KEPT_BY_A_METHOD, "self.errors.append(per_row)", "self.errors.append(per_row.detach())"),
    (SUMMED_BY_A_METER, "meter.update(loss)", "meter.update(loss.item())"),
]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(("text", "line", "detached"), KEEPING)
def test_the_line_that_keeps_a_result_or_passes_it_to_a_sum_is_named_and_detaches_it(
    text, line, detached, engine, checks
):
    (one,) = [each for each in checks.of_text(text, engine).found if each.finding.kind == "graphs-kept"]
    assert text.splitlines()[one.finding.at.line - 1].strip() == line
    mended = one.finding.edit.applied(text)
    assert detached in mended
    after = checks.of_text(mended, engine)
    assert "graphs-kept" not in {each.finding.kind for each in after.found}
    assert after.errors == []


INNER = """
import torch
from torch import nn
torch.manual_seed(0)
net, kept = nn.Linear(3, 1), []
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def loss_of(weights, x):
    return (nn.functional.linear(x, *weights) - x[:, :1]).pow(2).mean()
for epoch in range(4):
    outer = 0.0
    for task in range(3):
        x, fast = torch.randn(4, 3), list(net.parameters())
        for step in range(3):
            grads = torch.autograd.grad(loss_of(fast, x), fast)
            fast = [p - 0.05 * g for p, g in zip(fast, grads)]
        outer = outer + loss_of(fast, x)
        KEEP
    opt.zero_grad()
    (outer / 3).backward(RETAIN)
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("keep", "retain", "is_found"),
    [
        ("pass", "", False),
        ("kept = [*kept, outer][-2:]", "", False),
        ("kept.append(loss_of(fast, x))", "", True),
        ("kept.append(outer)", "retain_graph=True", True),
    ],
)
def test_weights_that_inner_passes_adapt_for_the_last_pass_are_freed_with_it(keep, retain, is_found, engine, checks):
    text = INNER.replace("KEEP", keep).replace("RETAIN", retain)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    assert any(one.finding.kind == "graphs-kept" for one in outcome.found) is is_found
