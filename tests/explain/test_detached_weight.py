"""Weights that a line uses through .data or detach() while another use trains them, and uses that are right."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
enc, dec, emb = nn.Linear(6, 3), nn.Linear(3, 6), nn.Embedding(7, 3)
conv = nn.Conv1d(2, 4, 3, padding=1)
bias = nn.Parameter(torch.zeros(6))
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters(), *emb.parameters(), *conv.parameters(), bias], lr=0.01)
u = torch.randn(3)
for step in range(3):
    x, tokens, images = torch.randn(8, 6), torch.randint(0, 7, (8,)), torch.randn(4, 2, 5)
    out = dec(torch.tanh(enc(x))) + bias
    loss = (out - x).pow(2).mean() + emb(tokens).pow(2).mean() + conv(images).pow(2).mean()
    STEP
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
MISSING = {
    "a tied decoder": (
        "loss = (F.linear(torch.tanh(enc(x)), enc.weight.data.t(), bias) - x).pow(2).mean() + loss", "warning",
        "enc.weight.t()"),
    "a matrix product": (
        "z = torch.tanh(enc(x))\nloss = loss + (z @ enc.weight.data - x).pow(2).mean()", "warning", "z @ enc.weight -"),
    "logits of an embedding": (
        "h = emb(tokens)\nlogits = h @ emb.weight.data.t()\nloss = loss + F.cross_entropy(logits, tokens)", "warning",
        "h @ emb.weight.t()"),
    "a convolution": (
        "h = F.conv_transpose1d(conv(images), conv.weight.data, padding=1)\nloss = loss + (h - images).pow(2).mean()",
        "warning", "conv.weight, padding"),
    "a variable": (
        "w = enc.weight.data\nloss = loss + (F.linear(enc(x), w.t()) - x).pow(2).mean()", "warning",
        "w = enc.weight\n"),
    "detach": (
        "loss = loss + (F.linear(enc(x), enc.weight.detach().t()) - x).pow(2).mean()", "note", "enc.weight.t()"),
    "a multiple": (
        "loss = loss + (enc(x) @ (0.5 * enc.weight.data) - x).pow(2).mean()", "warning", "0.5 * enc.weight)"),
    "in a later step": (
        "if step == 2:\n    loss = loss + (enc(x) @ enc.weight.data - x).pow(2).mean()", "warning", "@ enc.weight -"),
}  # fmt: skip
WITH_TORCH_FUNC = "a critic that another loss trains"
"""The program that needs torch.func, which the built-in engine lacks."""
RIGHT = {
    "nothing else": "pass",
    "the weight itself": "loss = loss + (F.linear(enc(x), enc.weight.t()) - x).pow(2).mean()",
    "statistics": "print(enc.weight.data.norm().item(), (enc.weight.detach() @ enc.weight.data.t()).trace().item())",
    "a power iteration": (
        "v = F.normalize(enc.weight.data.t() @ u, dim=0)\nu = F.normalize(enc.weight.data @ v, dim=0)\n"
        "loss = loss + 0.01 * u @ enc.weight @ v"),
    "a number that is only printed": "print((enc(x) @ enc.weight.data - x).pow(2).mean().item())",
    "an input with a gradient of its own": (
        "p = torch.randn(8, 6, requires_grad=True)\n"
        "loss = loss + (enc(p) - enc(p.detach())).pow(2).mean() + enc(p).mean()"),
    "copies of all parameters": (
        "w, b = [p.detach() for p in enc.parameters()]\nloss = loss + F.linear(out, w, b).pow(2).mean()"),
    "decay by hand": "enc.weight.data.mul_(0.999)",
    "an estimate that passes the gradient through": (
        "w = enc.weight + (enc.weight.data.sign() - enc.weight.detach())\nloss = loss + F.linear(x, w).pow(2).mean()"),
    "a distance to the last weights": "loss = loss + (enc.weight - enc.weight.detach()).pow(2).sum()",
    "a target": (
        "target = F.linear(x, enc.weight.data, enc.bias.data)\nloss = loss + (enc(x + 0.1) - target).pow(2).mean()"),
    "a stopped branch": "loss = loss - F.cosine_similarity(enc(x), enc(x + 0.1).detach(), dim=1).mean()",
    "fast weights": (
        "w = enc.weight.detach().clone().requires_grad_()\n"
        "(g,) = torch.autograd.grad(F.linear(x, w).pow(2).mean(), w)\n"
        "loss = loss + F.linear(enc(x) @ enc.weight, w - 0.1 * g).pow(2).mean()"),
    "a critic that another loss trains": (
        "critic = {k: v.detach() for k, v in dec.named_parameters()}\n"
        "loss = loss - torch.func.functional_call(dec, critic, (enc(x),)).mean()"),
}  # fmt: skip


def program(step):
    return HEAD.replace("STEP", step.replace("\n", "\n    "))


def detached(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "detached-weight"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISSING)
def test_a_use_of_a_trained_weight_without_its_gradient_is_found(name, engine, checks):
    step, level, mended = MISSING[name]
    text = program(step)
    (one,) = detached(text, engine, checks)
    assert one.level == level
    assert (".data" if level == "warning" else ".detach()") in text.splitlines()[one.finding.at.line - 1]
    assert "is missing" in "\n".join(row for _, row, _ in lines(one.finding))
    assert mended in one.finding.edit.new
    assert detached(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(RIGHT.keys() - {WITH_TORCH_FUNC}))
def test_uses_without_a_gradient_on_purpose_are_right(name, engine, checks):
    assert [str(one) for one in detached(program(RIGHT[name]), engine, checks)] == []


@pytest.mark.torch
def test_a_critic_called_with_other_parameters_is_right(checks):
    assert [str(one) for one in detached(program(RIGHT[WITH_TORCH_FUNC]), "torch", checks)] == []
