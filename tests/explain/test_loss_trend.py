"""Losses that grow by orders of magnitude, the data that makes them do so, and losses that only rise."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
area = 600 + 2400 * torch.rand(40)
rooms = torch.randint(1, 7, (40,)).float()
x = torch.stack([area, rooms], dim=1)
y = 0.1 * area[:, None] + 5 * rooms[:, None]
CHANGE
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=RATE)
for step in range(STEPS):
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOSS = "loss = F.mse_loss(net(x), y)  #!"


def program(rate, steps, change="", loss=LOSS):
    words = {"RATE": rate, "STEPS": steps, "CHANGE": change, "LOSS": loss}
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


STANDARDIZED = "x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()"


def kinds(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return {one.finding.kind: one for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_diverges_is_found_before_it_is_inf_with_the_data_that_is_too_large(engine, checks):
    text = program(1e-5, 8)
    one = kinds(text, engine, checks)["diverging"]
    assert one.level == "warning"
    assert text.splitlines()[one.finding.at.line - 1].startswith("opt = ")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "diverges in 8 passes" in said
    assert "goes into" in said
    assert "; its columns have " in said
    assert "standardize the data" in said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rate_that_is_too_large_for_standardized_data_is_the_reason(engine, checks):
    one = kinds(program(4.0, 8, STANDARDIZED), engine, checks)["diverging"]
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "a smaller learning rate" in said
    assert "standardize" not in said


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_grows_while_the_parameters_do_not_is_a_note(engine, checks):
    text = program(1e-6, 8, STANDARDIZED, "loss = F.mse_loss(net(x), y) * 5.0 ** step")
    assert kinds(text, engine, checks)["diverging"].level == "note"


@pytest.mark.parametrize("engine", ENGINES)
def test_an_inf_after_a_divergence_names_the_data_that_is_too_large_and_nothing_else(engine, checks):
    found = kinds(program(0.01, 12), engine, checks)
    assert [*found] == ["large-steps"]
    said = "\n".join(row for _, row, _ in lines(found["large-steps"].finding))
    assert "too large for such large data" in said
    assert "goes into" in said
    assert "; its columns have " in said
    assert "standardize the data" in said


TRAINED = {
    "standardized": program(0.1, 8, STANDARDIZED),
    "a search for a rate": program(1e-9, 8, STANDARDIZED, "opt.param_groups[0]['lr'] *= 30\n    " + LOSS),
    "a loss that jumps": program(
        1e-9, 8, STANDARDIZED, "loss = F.mse_loss(net(x), y) * (1.0, 1.0, 1e5, 1.0, 1e6, 1.0, 1e6, 1e5)[step]"
    ),
    "a loss that is multiplied": program(0.01, 8, STANDARDIZED, "loss = F.mse_loss(net(x), y) * 2.0 ** step"),
    "an objective that is maximized": program(0.5, 12, STANDARDIZED).replace("lr=0.5", "lr=0.5, maximize=True"),
    "a few steps": program(1e-5, 4),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TRAINED)
def test_a_loss_that_does_not_grow_without_end_is_no_finding(name, engine, checks):
    assert "diverging" not in kinds(TRAINED[name], engine, checks)


BY_HAND = """
import torch
torch.manual_seed(0)
x = torch.linspace(0, 10, 20)
y = 3 * x + 2 + torch.randn(20)
w = torch.zeros(1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = RATE
for epoch in range(STEPS):
    loss = ((w * x + b - y) ** 2).mean()  #!
    UPDATE
"""
IN_PLACE = """loss.backward()
with torch.no_grad():
    w -= lr * w.grad
    b -= lr * b.grad
w.grad.zero_()
b.grad.zero_()"""
UPDATES = {
    "in place": IN_PLACE,
    "through data": """loss.backward()
w.data = w.data - lr * w.grad
b.data = b.data - lr * b.grad
w.grad, b.grad = None, None""",
    "in place of data": """w.grad, b.grad = None, None
loss.backward()
w.data -= lr * w.grad
b.data -= lr * b.grad""",
    "new leaves": """loss.backward()
w = (w - lr * w.grad).detach().requires_grad_()
b = (b - lr * b.grad).detach().requires_grad_()""",
    "gradients as results": """g = torch.autograd.grad(loss, [w, b])
with torch.no_grad():
    w -= lr * g[0]
    b -= lr * g[1]""",
}


def by_hand(update, rate="0.1", steps=10):
    text = BY_HAND.replace("UPDATE", update.replace("\n", "\n    "))
    return text.replace("RATE", rate).replace("STEPS", str(steps))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", UPDATES)
def test_a_rate_that_is_too_large_is_the_reason_without_an_optimizer(name, engine, checks):
    text = by_hand(UPDATES[name])
    outcome = checks.of_text(text, engine)
    (one,) = outcome.found  # and not the gradient that grows with the loss
    assert (one.finding.kind, one.level) == ("diverging", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert one.finding.fix == "a smaller learning rate than 0.1, or clip_grad_norm_ before the update"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_slow_divergence_without_an_optimizer_is_found(engine, checks):
    (one,) = checks.of_text(by_hand(IN_PLACE, "0.031", 40), engine).found
    assert one.finding.kind == "diverging"
    assert "a smaller learning rate than 0.031" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_an_optimizer_that_diverges_has_no_second_finding_about_its_gradient(engine, checks):
    step = "opt.zero_grad()\nloss.backward()\nopt.step()"
    text = by_hand(step).replace("lr = 0.1", "opt = torch.optim.SGD([w, b], lr=0.1)")
    (one,) = checks.of_text(text, engine).found
    assert one.finding.kind == "diverging"
    assert one.finding.fix == "a smaller learning rate than 0.1, or clip_grad_norm_ before the step"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("steps", [3, 5])
def test_a_gradient_that_is_large_as_the_loss_is_does_not_explode_on_its_way(steps, engine, checks):
    assert checks.of_text(by_hand(IN_PLACE, "3.0", steps), engine).found == []


ON_PURPOSE = {
    "a rate that converges": by_hand(IN_PLACE, "0.01", 10),
    "steps along the gradient": by_hand(IN_PLACE.replace("-=", "+="), "0.1", 10),
    "a search for a rate": by_hand(IN_PLACE + "\nlr *= 2", "0.001", 12),
    "leaves that stay": by_hand("loss.backward()\nw.grad, b.grad = None, None\ny = 10 * y"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ON_PURPOSE)
def test_a_loss_that_grows_on_purpose_without_an_optimizer_is_no_finding(name, engine, checks):
    assert "diverging" not in kinds(ON_PURPOSE[name], engine, checks)


NOT_WITHOUT_END = {
    "models that are trained one after the other": """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(120, 3)
y = 2 * x.sum(1, keepdim=True) + torch.randn(120, 1)
for fold in range(3):
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(30):
        loss = (net(x) - (1 + 2 * fold) * y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "more models than two losses have, as in a search over folds": """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(120, 3)
y = 2 * x.sum(1, keepdim=True) + torch.randn(120, 1)
def fit(rows, decay):
    net = nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=decay)
    for step in range(30):
        loss = (net(x[rows]) - y[rows]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
for decay in (0.0, 0.5, 2.0):
    for fold in range(4):
        fit(torch.arange(120) % 4 != fold, decay)
""",
    "a sum over all data so far": """
import torch
torch.manual_seed(0)
x, y, w = torch.empty(0, 3), torch.empty(0), torch.zeros(3, requires_grad=True)
opt = torch.optim.Adam([w], 0.05)
for step in range(60):
    few = step < 3
    new = torch.randn(1 if few else 40, 3) * (0.05 if few else 1)
    x, y = torch.cat([x, new]), torch.cat([y, new.sum(1) + (0.01 if few else 0.5) * torch.randn(len(new))])
    loss = (x @ w - y).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a network that reverses a gradient": """
import torch
from torch import nn
torch.manual_seed(0)
class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return -g
encoder, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
x = torch.randn(64, 3)
for step in range(40):
    loss = (head(ReverseGradient.apply(encoder(x))) - x[:, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NOT_WITHOUT_END)
def test_a_loss_that_is_larger_at_the_end_for_another_reason_is_no_finding(name, engine, checks):
    assert kinds(NOT_WITHOUT_END[name], engine, checks).keys().isdisjoint({"diverging", "not-falling"})
