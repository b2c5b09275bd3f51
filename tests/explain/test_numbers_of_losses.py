"""Losses that are made again from their numbers, so that they have no history, in programs that also draw indices."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for episode in range(2):
    losses = []
    for i in range(5):
        logp = torch.log_softmax(net(torch.randn(4)), 0)
        action = logp.exp().multinomial(1)
        losses.append(-logp.gather(0, action)[0] * 0.5)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOSSES = {
    "a list": ("loss = torch.tensor(losses).sum()  #!", "torch.stack(losses).sum()"),
    "a list as it is": ("loss = torch.as_tensor(losses).mean()  #!", "torch.stack(losses).mean()"),
    "the class of floats": ("loss = torch.FloatTensor(losses).sum()  #!", "torch.stack(losses).sum()"),
    "numbers of a list": (
        "loss = torch.tensor([l.item() for l in losses]).sum()  #!", "torch.stack([l for l in losses]).sum()"),
    "two numbers": (
        "loss = torch.tensor([float(losses[0]), losses[1].item()]).sum()  #!", "torch.stack([losses[0], losses[1]])"),
    "a sum": ("loss = torch.tensor(sum(losses))  #!", "loss = sum(losses)"),
    "an array": ("loss = torch.tensor(np.mean([l.item() for l in losses]))  #!", ""),
    "a total of numbers": (
        "total = 0.0\nfor l in losses:\n    total += float(l)  #!\nloss = torch.tensor(total)", ""),
    "a list of numbers": (
        "values = []\nfor l in losses:\n    values.append(l.item())  #!\nloss = torch.tensor(values).mean()", ""),
    "numbers with weights of the drawn indices": (
        "values = [l.item() for l in losses]  #!\nweight = (action > 0).float()\n"
        "loss = (torch.tensor(values) * weight).sum()", ""),
}  # fmt: skip
OTHER = {
    "no tracked number": ("loss = (action == 1).float().mean()", "multinomial"),
    "a list without gradients": (
        "with torch.no_grad():\n    loss = torch.stack([net(torch.randn(4)).sum() for l in losses]).mean()", "no_grad"),
}  # fmt: skip


def program(loss):
    return PROGRAM.replace("LOSS", loss.replace("\n", "\n    "))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOSSES)
def test_the_line_that_takes_the_numbers_is_named_and_not_the_drawn_index(name, engine, checks):
    loss, mended = LOSSES[name]
    text = program(loss)
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("untracked-loss", "error")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "history" in one.finding.fix
    if mended:
        (edit,) = {each.edit for each in (one.finding, *one.finding.parts)} - {None}
        assert mended in edit.new
        after = checks.of_text(edit.applied(text), engine)
        assert after.errors == []
        assert [str(each) for each in after.found if each.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OTHER)
def test_another_reason_is_still_named(name, engine, checks):
    loss, words = OTHER[name]
    (one,) = [each for each in checks.of_text(program(loss), engine).found if each.level == "error"]
    assert one.finding.kind == "untracked-loss"
    assert words in "\n".join(row for _, row, _ in lines(one.finding))


DICE = """
import torch
from torch import nn
torch.manual_seed(0)

class Dice(nn.Module):
    def forward(self, pred, target):
        DICE

def overlap(pred, target):
    p = pred.data.cpu().numpy()  #FUNCTION
    t = target.numpy()
    return 1.0 - 2.0 * (p * t).sum() / (p.sum() + t.sum())

net, criterion = nn.Linear(4, 3), Dice()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = torch.ones(5, 3)
for i in range(2):
    loss = criterion(torch.sigmoid(net(torch.randn(5, 4))), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ARRAYS = {
    "arrays of both": (
        "p = pred.detach().cpu().numpy().ravel()  #!\nt = target.cpu().numpy().ravel()\n"
        "shared = (p * t).sum()\ndice = (2.0 * shared + 1.0) / (p.sum() + t.sum() + 1.0)\n"
        "return torch.tensor(1.0 - dice)"
    ),
    "an array made a tensor again": (
        "t = target.numpy()\np = pred.detach().numpy()  #!\nerror = abs(p - t)\nreturn torch.from_numpy(error).mean()"
    ),
    "a function of arrays": "return torch.tensor(overlap(pred, target))",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ARRAYS)
def test_the_line_that_takes_a_tracked_tensor_as_an_array_is_named(name, engine, checks):
    text = DICE.replace("DICE", ARRAYS[name].replace("\n", "\n        "), 1)
    text = text.replace("#FUNCTION", "#!" if "overlap" in ARRAYS[name] else "")
    (one,) = [each for each in checks.of_text(text, engine).found if each.level == "error"]
    assert one.finding.kind == "untracked-loss"
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "an array has no history" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_of_torch_functions_next_to_a_metric_of_arrays_has_no_finding(engine, checks):
    dice = "self.last = overlap(pred, target)\n        return 1.0 - 2.0 * (pred * target).sum() / (pred + target).sum()"
    outcome = checks.of_text(DICE.replace("DICE", dice, 1), engine)
    assert (outcome.errors, [str(each) for each in outcome.found if each.level == "error"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_constant_next_to_a_metric_of_arrays_is_not_said_to_be_of_the_metric(engine, checks):
    dice = "self.last = overlap(pred, target)\n        return torch.tensor(0.0, dtype=torch.float32)"
    found = checks.of_text(DICE.replace("DICE", dice, 1), engine).found
    (one,) = [each for each in found if each.level == "error"]
    assert "array of" not in "\n".join(row for _, row, _ in lines(one.finding))


HEADS = """
import torch
from torch import nn
torch.manual_seed(0)
body, one, two = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 1)
opt = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
for i in range(2):
    h = torch.relu(body(torch.randn(5, 4)))
    a = nn.functional.cross_entropy(one(h), torch.tensor([0, 1, 2, 0, 1]))
    b = 0.5 * nn.functional.mse_loss(two(h)[:, 0], torch.randn(5))
    losses = [a, b]
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OF_HEADS = {
    "a list": "loss = torch.tensor(losses, requires_grad=True).sum()  #!",
    "numbers": "loss = torch.tensor([a.item(), b.item()], requires_grad=True).mean()  #!",
    "a leaf made afterwards": "loss = torch.tensor(losses).requires_grad_().sum()  #!",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OF_HEADS)
def test_the_numbers_of_several_heads_are_one_finding(name, engine, checks):
    text = HEADS.replace("LOSS", OF_HEADS[name])
    found = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    (one,) = found
    assert (one.finding.kind, one.more) == ("cut" if "afterwards" in name else "not-reached", 5)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "torch.tensor(...)" in "\n".join(row for _, row, _ in lines(one.finding))


@pytest.mark.parametrize("engine", ENGINES)
def test_stacked_losses_of_several_heads_have_no_finding(engine, checks):
    found = checks.of_text(HEADS.replace("LOSS", "loss = torch.stack(losses).sum()"), engine).found
    assert [each for each in found if each.level != "note"] == []
