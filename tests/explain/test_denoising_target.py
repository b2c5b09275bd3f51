"""Targets of noise that is not the noise in the input, and random numbers that are right."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
data = torch.randn(32, 4)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
opt = torch.optim.Adam(net.parameters(), lr=0.01)

def q_sample(x, t, noise=None):
    if noise is None:
        noise = torch.randn_like(x)
    return (1 - t) * x + t * noise

def add_noise(x, t):
    eps = torch.randn_like(x)
    return (1 - t).sqrt() * x + t.sqrt() * eps, eps

def moons(n):
    a = 3.14 * torch.rand(n, 1)
    return torch.cat([a.cos(), a.sin(), a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 4)

for epoch in range(3):
    for x0 in data.split(16):
        t = torch.rand(16, 1)
        STEP
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def net(step):
    return HEAD.replace("STEP", step.replace("\n", "\n        "))


OTHER = {
    "a function that draws again": (
        net("noise = torch.randn_like(x0)\nx_t = q_sample(x0, t)  #!\nloss = F.mse_loss(net(x_t), noise)"),
        ["q_sample(x0, t, noise=noise)"],
    ),
    "a draw in the input": (
        net("eps = torch.randn(16, 4)\nx_t = x0 + 0.5 * torch.randn(16, 4)  #!\nloss = (net(x_t) - eps).pow(2).mean()"),
        ["x_t = x0 + 0.5 * eps"],
    ),
    "a draw in the loss": (
        net("eps = torch.randn_like(x0)\nx_t = x0 * (1 - t) + eps * t\n"
            "loss = F.smooth_l1_loss(net(x_t), torch.randn_like(x0))  #!"),
        ["F.smooth_l1_loss(net(x_t), eps)"],
    ),
}  # fmt: skip
RETURNED = {
    "a draw that is returned in vain": (
        "noise = torch.randn_like(x0)\nx_t, _ = add_noise(x0, t)  #!\nloss = F.mse_loss(net(x_t), noise)",
        "x_t, noise = add_noise(x0, t)"),
    "data with noise of its own": (
        "x0 = moons(16)\nnoise = torch.randn_like(x0)\nx_t, _ = add_noise(x0, t)  #!\n"
        "loss = F.mse_loss(net(x_t), noise)", "x_t, noise = add_noise(x0, t)"),
    "a returned draw with a name": (
        "x_t, eps = add_noise(moons(16), t)\nnoise = torch.randn(16, 4)  #!\nloss = (net(x_t) - noise).abs().mean()",
        "noise = eps"),
    "all of the data in each step": (
        "noise = torch.randn_like(data)\nx_t, _ = add_noise(data, torch.rand(32, 1))  #!\n"
        "loss = F.l1_loss(noise, net(x_t))", "x_t, noise = add_noise"),
    "a result that is not unpacked": (
        "noise = torch.randn_like(x0)\nx_t = add_noise(x0, t)[0]  #!\nloss = F.mse_loss(net(x_t), noise)", ""),
}  # fmt: skip
HEALTHY = {
    "one draw of a function": net("x_t, e = add_noise(moons(16), t)\nloss = F.mse_loss(net(x_t), e)"),
    "random data with more noise, and random targets": net(
        "x, y = torch.randn(16, 4), torch.randn(16, 4)\n"
        "loss = F.mse_loss(net(0.9 * x + 0.3 * torch.randn_like(x)), y)"),
    "a second noise that regularizes": net(
        "x_t, e = add_noise(x0, t)\nloss = F.mse_loss(net(x_t + 0.01 * torch.randn_like(x0)), e)"),
    "one draw": net("noise = torch.randn_like(x0)\nx_t = q_sample(x0, t, noise)\nloss = F.mse_loss(net(x_t), noise)"),
    "one draw by hand": net("e = torch.randn_like(x0)\nloss = (net(x0 * (1 - t) + e * t) - e).pow(2).mean()"),
    "a denoising autoencoder": net("x_t = x0 + 0.3 * torch.randn_like(x0)\nloss = F.mse_loss(net(x_t), x0)"),
    "random data that is denoised": net(
        "x = torch.randn(16, 4)\nx_t = x + 0.3 * torch.randn_like(x)\nloss = F.mse_loss(net(x_t), x)"),
    "random inputs and targets": net("x, y = torch.randn(16, 4), torch.randn(16, 4)\nloss = F.mse_loss(net(x), y)"),
    "random labels": net(
        "fake = 0.9 + 0.1 * torch.rand(16, 4)\nx = x0 + 0.1 * torch.randn(16, 4)\n"
        "loss = F.binary_cross_entropy_with_logits(net(x), fake)"),
    "dropout": net("y = torch.randn(16, 4)\nloss = F.mse_loss(net(F.dropout(x0, 0.2)), y)"),
    "a latent": net("z = torch.randn(16, 4)\nloss = F.mse_loss(net(z), x0)"),
    "flow matching": net(
        "e = torch.randn_like(x0)\nx_t = (1 - t) * e + t * x0\nloss = F.mse_loss(net(x_t), x0 - e)"),
}  # fmt: skip


def other(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "other-noise"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OTHER)
def test_another_noise_than_the_target_is_found_and_replaced(name, engine, checks):
    text, words = OTHER[name]
    (one,) = other(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding)) + one.finding.edit.new
    assert one.level == "note"
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert after.errors == []
    assert [str(each) for each in after.found if each.level != "note" or each.finding.kind == "other-noise"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RETURNED)
def test_noise_that_a_function_returns_is_taken_as_the_target(name, engine, checks):
    step, mended = RETURNED[name]
    text = net(step)
    (one,) = other(text, engine, checks)
    assert one.level == "warning"
    assert "take the noise that add_noise returns" in one.finding.fix
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) is bool(mended)
    if mended:
        assert mended in one.finding.edit.new
        assert other(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_noise_that_is_meant_is_not_reported(name, engine, checks):
    assert [str(one) for one in other(HEALTHY[name], engine, checks)] == []


NOISED = {
    "of a diffusion model": (
        net("e = torch.randn_like(x0)\nx_t = q_sample(x0, t, e)\nloss = F.mse_loss(net(x_t), x_t)  #!"), "warning"),
    "by hand": (
        net("e = torch.randn(16, 4)\nx_t = t.sqrt() * x0 + (1 - t).sqrt() * e\n"
            "loss = (x_t - net(x_t)).pow(2).mean()  #!"), "warning"),
    "of an interpolation": (
        net("x_t = torch.lerp(x0, torch.randn_like(x0), t)\nloss = F.smooth_l1_loss(net(x_t), x_t.clone())  #!"),
        "warning"),
    "of rows with one factor": (
        net("rows = data[torch.randperm(32)[:8]]\nnoisy = rows + torch.randn_like(rows).mul(0.3)\n"
            "loss = F.mse_loss(net(noisy), noisy)  #!"), "note"),
    "with one factor": (
        net("noisy = x0 + 0.3 * torch.randn_like(x0)\nloss = F.mse_loss(net(noisy), noisy)  #!"), "note"),
}  # fmt: skip
CLEAN = {
    "an autoencoder": net("loss = F.mse_loss(net(x0), x0)"),
    "the difference as the noise": net(
        "noise = torch.randn_like(x0)\nx_t = q_sample(x0, t, noise)\nloss = F.mse_loss(x_t - net(x_t), x0)"),
    "another noise of the same data": net(
        "one, other = x0 + 0.3 * torch.randn_like(x0), x0 + 0.3 * torch.randn_like(x0)\n"
        "loss = F.mse_loss(net(one), other)"),
    "noise within the model": net(
        "h = net[1](net[0](x0))\nloss = F.mse_loss(net[2](h + 0.1 * torch.randn_like(h)), x0)"),
    "data that the program makes": net(
        "x = torch.sin(3 * torch.rand(16, 1) * torch.arange(4.0)) + 0.1 * torch.randn(16, 4)\n"
        "loss = F.mse_loss(net(x), x)"),
    "data around centers": net(
        "centers = x0[torch.arange(16) // 8]\nx = centers + 0.3 * torch.randn(16, 4)\nloss = F.mse_loss(net(x), x)"),
    "data that the program computes": net(
        "x = torch.sin(x0)\nx = x + 0.3 * torch.randn_like(x)\nloss = F.mse_loss(net(x), x)"),
    "a shift of all": net("x = x0 + 1.5\nloss = F.mse_loss(net(x), x)"),
    "the velocity": net(
        "e = torch.randn_like(x0)\nx_t = q_sample(x0, t, e)\nloss = F.mse_loss(net(x_t), e - x0)"),
}  # fmt: skip


def noised(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "noised-target"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NOISED)
def test_the_noised_input_as_the_target_is_found(name, engine, checks):
    text, level = NOISED[name]
    (one,) = noised(text, engine, checks)
    assert one.level == level
    assert "the model gets it, so it can copy it" in str(one.finding)
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*CLEAN, *HEALTHY])
def test_targets_without_the_noise_of_the_input_are_not_reported(name, engine, checks):
    assert noised({**HEALTHY, **CLEAN}[name], engine, checks) == []
