"""Losses of a copy of the model: whose gradient never comes to the optimizer, and whose gradient is copied back."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import copy
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(1, 8), nn.Linear(8, 1)
    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))
    def twin(self):
        other = Net()
        other.load_state_dict(self.state_dict())  #!twin
        return other
model = Net()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
def task():
    x = torch.randn(10, 1)
    return x[:5], torch.sin(x[:5]), x[5:], torch.sin(x[5:])
"""
WRONG = {
    "an inner step on data of a copy": (
        "#!copy",
        """
def adapted(model, x, y):
    fast = copy.deepcopy(model)  #!copy
    grads = torch.autograd.grad(F.mse_loss(fast(x), y), fast.parameters(), create_graph=True)
    for p, g in zip(fast.parameters(), grads):
        p.data -= 0.1 * g
    return fast
for i in range(3):
    loss = 0.0
    for _ in range(2):
        x, y, x2, y2 = task()
        loss = loss + F.mse_loss(adapted(model, x, y)(x2), y2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "an inner optimizer of a copy": (
        "#!copy",
        """
for i in range(3):
    loss = 0.0
    for _ in range(2):
        x, y, x2, y2 = task()
        fast = copy.deepcopy(model)  #!copy
        inner = torch.optim.SGD(fast.parameters(), lr=0.1)
        inner.zero_grad()
        F.mse_loss(fast(x), y).backward()
        inner.step()
        loss = loss + F.mse_loss(fast(x2), y2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "another model with the same numbers": (
        "#!load",
        """
fast = Net()
for i in range(3):
    opt.zero_grad()
    fast.load_state_dict(model.state_dict())  #!load
    x, y, x2, y2 = task()
    grads = torch.autograd.grad(F.mse_loss(fast(x), y), fast.parameters())
    with torch.no_grad():
        for p, g in zip(fast.parameters(), grads):
            p -= 0.1 * g
    F.mse_loss(fast(x2), y2).backward()
    opt.step()
""",
    ),
    "a copy that a method of the model makes": (
        "#!twin",
        """
for i in range(3):
    x, y, x2, y2 = task()
    fast = model.twin()
    grads = torch.autograd.grad(F.mse_loss(fast(x), y), fast.parameters(), create_graph=True)
    for p, g in zip(fast.parameters(), grads):
        p.data = p.data - 0.1 * g
    opt.zero_grad()
    F.mse_loss(fast(x2), y2).backward()
    opt.step()
""",
    ),
    "an optimizer of the model before the copy": (
        "#!copy",
        """
net = copy.deepcopy(model)  #!copy
for i in range(3):
    x, y, x2, y2 = task()
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
""",
    ),
}
RIGHT = {
    "gradients that are copied back": """
for i in range(3):
    opt.zero_grad()
    for _ in range(2):
        x, y, x2, y2 = task()
        fast = copy.deepcopy(model)
        grads = torch.autograd.grad(F.mse_loss(fast(x), y), fast.parameters())
        for p, g in zip(fast.parameters(), grads):
            p.data -= 0.1 * g
        F.mse_loss(fast(x2), y2).backward()
        for p, q in zip(model.parameters(), fast.parameters()):
            p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
    opt.step()
""",
    "weights that are copied back": """
for i in range(3):
    fast = copy.deepcopy(model)
    inner = torch.optim.SGD(fast.parameters(), lr=0.1)
    for _ in range(2):
        x, y, x2, y2 = task()
        inner.zero_grad()
        F.mse_loss(fast(x), y).backward()
        inner.step()
    with torch.no_grad():
        for p, q in zip(model.parameters(), fast.parameters()):
            p += 0.5 * (q - p)
""",
    "a difference of weights as the gradient": """
for i in range(3):
    fast = copy.deepcopy(model)
    inner = torch.optim.SGD(fast.parameters(), lr=0.1)
    for _ in range(2):
        x, y, x2, y2 = task()
        inner.zero_grad()
        F.mse_loss(fast(x), y).backward()
        inner.step()
    opt.zero_grad()
    for p, q in zip(model.parameters(), fast.parameters()):
        p.grad = p.data - q.data
    opt.step()
""",
    "a state dict of means": """
for i in range(3):
    fast = copy.deepcopy(model)
    for _ in range(2):
        x, y, x2, y2 = task()
        fast.zero_grad()
        F.mse_loss(fast(x), y).backward()
        with torch.no_grad():
            for p in fast.parameters():
                p -= 0.1 * p.grad
    new = fast.state_dict()
    model.load_state_dict({k: v + 0.5 * (new[k] - v) for k, v in model.state_dict().items()})
""",
    "a copy that is trained for an evaluation": """
for i in range(4):
    x, y, x2, y2 = task()
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
    if i % 2:
        fast = copy.deepcopy(model)
        fast.zero_grad()
        for _ in range(2):
            F.mse_loss(fast(x), y).backward()
            for p in fast.parameters():
                p.data -= 0.1 * p.grad
                p.grad = None
        with torch.no_grad():
            F.mse_loss(fast(x2), y2)
""",
    "a target that follows": """
target = copy.deepcopy(model).requires_grad_(False)
for i in range(3):
    x, y, x2, y2 = task()
    opt.zero_grad()
    F.mse_loss(model(x), target(x2)).backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(target.parameters(), model.parameters()):
            p.lerp_(q, 0.1)
""",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_the_line_of_the_copy_is_named(name, engine, checks):
    mark, body = WRONG[name]
    text = HEAD + body
    (one,) = checks.of_text(text, engine).found
    assert (one.level, one.finding.kind) == ("warning", "copied-model")
    assert text.splitlines()[one.finding.at.line - 1].endswith(mark)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "Adam" in said
    assert "found no gradient in 3 steps" in said
    assert ("functional_call" in one.finding.fix) is (name != "an optimizer of the model before the copy")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_copy_whose_gradient_or_numbers_come_back_is_no_finding(name, engine, checks):
    assert [str(one) for one in checks.of_text(HEAD + RIGHT[name], engine).found] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_layers_that_are_replaced_are_no_copy_of_the_model(engine, checks):
    text = f"""{HEAD}
body, head = nn.Linear(1, 4), nn.Linear(4, 1)
body.bias.data = model.body.bias.data[:4].clone()
head.bias.data = model.head.bias.data.clone()
head.weight.data = model.head.weight.data[:, :4].clone()
new_norm = copy.deepcopy(model.body.weight)
model.body, model.head = body, head
for i in range(3):
    x, y, _, _ = task()
    opt.zero_grad()
    F.mse_loss(model(x) * new_norm.mean(), y).backward()
    opt.step()
"""
    assert "copied-model" not in {one.finding.kind for one in checks.of_text(text, engine).found}


@pytest.mark.torch
def test_new_parameters_of_the_numbers_of_the_model_are_copies(checks):
    text = f"""{HEAD}
from torch.func import functional_call
for i in range(3):
    x, y, x2, y2 = task()
    grads = torch.autograd.grad(F.mse_loss(model(x), y), model.parameters(), create_graph=True)
    named = zip(model.named_parameters(), grads)
    fast = {{n: nn.Parameter(p.data - 0.1 * g) for (n, p), g in named}}  #!
    opt.zero_grad()
    F.mse_loss(functional_call(model, fast, (x2,)), y2).backward()
    opt.step()
"""
    (one,) = checks.of_text(text, "torch").found
    assert one.finding.kind == "copied-model"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.torch
def test_parameters_that_are_results_are_no_copies(checks):
    text = f"""{HEAD}
from torch.func import functional_call
for i in range(3):
    x, y, x2, y2 = task()
    grads = torch.autograd.grad(F.mse_loss(model(x), y), model.parameters(), create_graph=True)
    fast = {{n: p - 0.1 * g for (n, p), g in zip(model.named_parameters(), grads)}}
    opt.zero_grad()
    F.mse_loss(functional_call(model, fast, (x2,)), y2).backward()
    opt.step()
"""
    assert [str(one) for one in checks.of_text(text, "torch").found] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_another_model_that_begins_with_the_same_number_everywhere_is_no_copy(engine, checks):
    text = f"""{HEAD}
other = Net()
for net in (model, other):
    for p in net.parameters():
        nn.init.constant_(p, 0.5)
for i in range(3):
    x, y, _, _ = task()
    opt.zero_grad()
    F.mse_loss(other(x), y).backward()
    opt.step()
"""
    kinds = {one.finding.kind for one in checks.of_text(text, engine).found}
    assert "copied-model" not in kinds
    assert "never-stepped" in kinds


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_failed_may_have_copied_the_gradients_back_later(engine, checks):
    text = f"""{HEAD}
fast = copy.deepcopy(model)
x, y, _, _ = task()
opt.step()
F.mse_loss(fast(x), y).backward()
torch.ones(2) + torch.ones(3)
"""
    assert "copied-model" not in {one.finding.kind for one in checks.of_text(text, engine).found}


OPTIMIZERS_OF_COPIES = {
    "of a program": ("""
average = copy.deepcopy(model)
opt = torch.optim.Adam(average.parameters(), lr=0.01)  #!
for i in range(3):
    x, y, x2, y2 = task()
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
""", "average"),
    "of a class": ("""
class Trainer:
    def __init__(self):
        self.net = Net()
        self.average = copy.deepcopy(self.net)
        self.opt = torch.optim.Adam(self.average.parameters(), lr=0.01)  #!
    def fit(self):
        for i in range(3):
            x, y, x2, y2 = task()
            self.opt.zero_grad()
            F.mse_loss(self.net(x), y).backward()
            self.opt.step()
Trainer().fit()
""", "self.average"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPTIMIZERS_OF_COPIES)
def test_an_optimizer_that_holds_the_copy_is_the_line(name, engine, checks):
    text, copied = OPTIMIZERS_OF_COPIES[name]
    (one,) = checks.of_text(HEAD + text, engine).found
    assert (one.level, one.finding.kind) == ("warning", "copied-model")
    assert (HEAD + text).splitlines()[one.finding.at.line - 1].endswith("#!")
    assert one.finding.fix.endswith(f"compute the loss with {copied}")
    assert "has the gradient" in one.finding.parts[0].text
