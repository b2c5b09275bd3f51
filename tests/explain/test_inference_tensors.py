"""Tensors of inference_mode that are used in training, and those that a program copies or only reads."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(3, 6), nn.Tanh())
probe = nn.Linear(6, 1)
opt = torch.optim.SGD(probe.parameters(), lr=0.1)
images, labels = torch.randn(16, 3), torch.randn(16, 1)
"""
LOOP = """
for epoch in range(2):
    loss = F.mse_loss(probe(features), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a block": ("with torch.inference_mode():  #!\n    features = backbone(images)\n", LOOP),
    "a decorator": (
        "@torch.inference_mode()  #!\ndef extract(x):\n    backbone.eval()\n"
        "    return torch.cat([backbone(rows) for rows in x.split(4)])\nfeatures = extract(images)\n", LOOP),
    "a frozen model": (
        "backbone.requires_grad_(False)\nwith torch.inference_mode():  #!\n    features = backbone(images)\n", LOOP),
    "rows of the features": (
        "with torch.inference_mode():  #!\n    cache = {'all': backbone(images)}\n",
        LOOP.replace("probe(features)", "probe(cache['all'])")),
    "a leaf": (
        "with torch.inference_mode():  #!\n    start = backbone(images).mean(0)\n",
        "start.requires_grad_()\n(probe(start) - 1).pow(2).mean().backward()\n"),
    "a write in place": (
        "with torch.inference_mode():  #!\n    features = backbone(images)\n", "features.mul_(2.0)\n" + LOOP),
    "a target": (
        "with torch.inference_mode():  #!\n    goal = backbone(images).mean(1, keepdim=True)\n",
        "loss = (probe(torch.randn(16, 6)) * goal).mean()\nloss.backward()\n"),
}  # fmt: skip
RIGHT = {
    "no_grad": ("with torch.no_grad():\n    features = backbone(images)\n", LOOP),
    "a copy outside": (
        "with torch.inference_mode():\n    features = backbone(images)\nfeatures = features.clone()\n", LOOP),
    "an evaluation": (
        "features = torch.randn(16, 6)\n",
        LOOP + "    with torch.inference_mode():\n        print(probe(features).mean())\n"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_the_line_that_switches_inference_mode_on_is_named_and_mended(name, engine, checks):
    text = HEAD + "".join(WRONG[name])
    outcome = checks.of_text(text, engine)
    (one,) = [each for each in outcome.found if each.level == "error"]
    assert (one.finding.kind, len(outcome.errors)) == ("failed", 1)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "is an inference tensor" in one.finding.text
    assert "torch.no_grad() in its place, or clone()" in one.finding.fix
    mended = one.finding.edit.applied(text)
    assert mended == text.replace("inference_mode()", "no_grad()")
    assert checks.of_text(mended, engine).errors == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_tensors_of_inference_mode_that_training_does_not_use_are_right(name, engine, checks):
    outcome = checks.of_text(HEAD + "".join(RIGHT[name]), engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.level != "note"] == []
