"""One flag that masks all rows of a loss, and flags of rows or of everything."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Linear(6, 12)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def weights(target):
    has = target.reshape(4, 3, -1).ne(0).any()  #f
    return has.float()[..., None, None]
for i in range(3):
    x = torch.randn(4, 6)
    out = net(x).view(4, 3, 2, 2)
    target = torch.randn(4, 3, 2, 2) * (torch.rand(4, 3) > 0.4).float()[..., None, None]
    error = F.mse_loss(out, target, reduction="none")
    BODY
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "channels without a target": (
        "warning",
        "mask = (target != 0).flatten(2).any()  #!\nmask = mask.view(mask.shape + (1,) * (4 - mask.ndim))\n"
        "loss = (error * mask).mean()",
        "#!",
    ),
    "a mask of another function": ("warning", "loss = (error * weights(target)).mean()", "#f"),
    "samples with a part": (
        "warning",
        "keep = target.view(4, -1).bool().all()  #!\nloss = (error.flatten(1).sum(1) * keep).mean()",
        "#!",
    ),
    "the largest number of a row": (
        "warning",
        "keep = target.abs().flatten(2).amax() > 0  #!\nloss = (error * keep[..., None, None]).mean()",
        "#!",
    ),
    "a choice by one flag": (
        "warning",
        "keep = target.flatten(1).bool().any()  #!\nrows = error.flatten(1).sum(1)\n"
        "loss = torch.where(keep, rows, torch.zeros(4)).mean()",
        "#!",
    ),
    "a flag and a mask": (
        "warning",
        "keep = target.flatten(1).bool().any() & (x[:, 0] > -1)  #!\nloss = (error.flatten(1).sum(1) * keep).mean()",
        "#!",
    ),
    "a flag of merged rows": (
        "note",
        "keep = (target != 0).flatten(0, 1).any()  #!\nloss = (error.flatten(0, 1) * keep).mean()",
        "#!",
    ),
    "a flag for everything": ("note", "loss = (error * (target != 0).any()).mean()  #!", "#!"),
}
RIGHT = {
    "a flag for each row": "loss = (error * (target != 0).flatten(2).any(dim=2)[..., None, None]).mean()",
    "a flag for each row in a mean": "loss = (error.flatten(1).sum(1) * target.flatten(1).bool().any(1)).mean()",
    "a condition": "loss = error.mean() if (target != 0).flatten(2).any() else out.mean()",
    "a weight of the whole loss": "loss = error.mean() * (target != 0).flatten(2).any()",
    "a check for nan": "loss = (error * torch.isfinite(error.detach()).flatten(1).all()).mean()",
    "a number as the largest": "loss = (error / target.abs().flatten(1).max()).mean()",
    "a flag of the parameters": "loss = (error * (net.weight.detach() != 0).any()).mean()",
    "a flag of a list of numbers": "loss = (error.reshape(-1) * (target.reshape(-1) != 0).any()).mean()",
    "a threshold of the errors": "loss = (error.flatten(1).sum(1) * (error.flatten(1).amax() > 0)).mean()",
    "the largest number as a factor": "loss = (error.flatten(1).sum(1) * target.abs().flatten(1).max()).mean()",
    "a flag that is added": "loss = (error.flatten(1).sum(1) + target.flatten(1).bool().any()).mean()",
    "a flag that is printed": "print((target != 0).flatten(2).any())\nloss = error.mean()",
}


def found_in(body, engine, checks):
    text = PROGRAM.replace("BODY", body.replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "flag-for-rows"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_one_flag_that_masks_all_rows_is_found(name, engine, checks):
    level, body, marker = WRONG[name]
    text, (one,) = found_in(body, engine, checks)
    assert one.level == level
    assert "is one flag for all rows, but masks" in one.finding.text
    assert text.splitlines()[one.finding.at.line - 1].endswith(marker)
    if one.finding.edit is not None:
        after = checks.of_text(one.finding.edit.applied(text), engine)
        assert after.errors == []
        assert [str(each) for each in after.found if each.finding.kind == "flag-for-rows"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_flags_of_rows_and_of_everything_are_left_out(name, engine, checks):
    assert [str(one) for one in found_in(RIGHT[name], engine, checks)[1]] == []
