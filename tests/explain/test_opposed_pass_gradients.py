"""Gradients of two passes that cancel each other in one optimizer's parameters, and passes that add up."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
GAN = """
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
D = nn.Sequential(nn.Linear(1, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.SGD(G.parameters(), lr=0.02)
opt_d = torch.optim.SGD(D.parameters(), lr=0.01)
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
for it in range(24):
    STEP
"""
REAL = "real = 4 + 0.5 * torch.randn(32, 1)\n"
WGAN = f"""{REAL}opt_g.zero_grad()
opt_d.zero_grad()
z = torch.randn(32, 4)
fake = G(z)
d_loss = D(fake).mean() - D(real).mean()  #!
d_loss.backward()
opt_d.step()
g_loss = -D(G(z)).mean()
g_loss.backward()
opt_g.step()
"""
SATURATING = f"""{REAL}opt_g.zero_grad()
opt_d.zero_grad()
made = G(torch.randn(32, 4))
on_real = F.binary_cross_entropy_with_logits(D(real), ones)
on_fake = F.binary_cross_entropy_with_logits(D(made), zeros)  #!
(on_real + on_fake).backward(retain_graph=True)
opt_d.step()
fooled = -F.binary_cross_entropy_with_logits(D(made.clone()), zeros)
fooled.backward()
opt_g.step()
"""
BOTH_FIRST = f"""{REAL}opt_g.zero_grad()
opt_d.zero_grad()
fake = G(torch.randn(32, 4))
scores = D(fake).mean()
(scores - D(real).mean()).backward(retain_graph=True)
(-scores).backward()  #!
opt_d.step()
opt_g.step()
"""
UNNAMED = f"""{REAL}opt_g.zero_grad()
opt_d.zero_grad()
z = torch.randn(32, 4)
d_loss = D(G(z)).mean() - D(real).mean()
d_loss.backward()
opt_d.step()
g_loss = -D(G(z)).mean()
g_loss.backward()  #!
opt_g.step()
"""
CLASS = """
class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.critic = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))

    def of_critic(self, z, real):
        fake = self.gen(z)
        return self.critic(fake).mean() - self.critic(real).mean()  #!

    def of_generator(self, z):
        return -self.critic(self.gen(z)).mean()


gan = Gan()
opt_g = torch.optim.SGD(gan.gen.parameters(), lr=0.02)
opt_d = torch.optim.SGD(gan.critic.parameters(), lr=0.001)
for it in range(16):
    z, real = torch.randn(32, 4), 4 + torch.randn(32, 1)
    gan.zero_grad()
    gan.of_critic(z, real).backward()
    opt_d.step()
    gan.of_generator(z).backward()
    opt_g.step()
"""


def gan(step):
    return HEAD + GAN.replace("STEP", step.replace("\n", "\n    "))


OPPOSED = {
    "a critic": (gan(WGAN), "D(fake.detach())"),
    "a game of zero sum": (gan(SATURATING), "D(made.detach())"),
    "two passes before the steps": (gan(BOTH_FIRST), "opt_g.zero_grad()"),
    "a module with both": (HEAD + CLASS, "self.critic(fake.detach())"),
    "a result without a name": (gan(UNNAMED), "opt_g.zero_grad()"),
}  # fmt: skip
TASKS = """
body, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.SGD(body.parameters(), lr=0.05)
of_a, of_b = torch.optim.SGD(a.parameters(), lr=0.05), torch.optim.SGD(b.parameters(), lr=0.05)
x = torch.randn(16, 4)
y = x.sum(1, keepdim=True)
for it in range(20):
    STEP
"""


def tasks(step):
    return HEAD + TASKS.replace("STEP", step.replace("\n", "\n    "))


ADD_UP = {
    "a critic that is detached": gan(WGAN.replace("D(fake)", "D(fake.detach())")),
    "gradients that are cleared in between": gan(WGAN.replace("g_loss =", "opt_g.zero_grad()\ng_loss =")),
    "a generator with another loss": gan(
        WGAN.replace("D(fake)", "D(fake.detach())").replace(
            "g_loss.backward()", "g_loss.backward()\n(0.1 * (G(z) - 4).pow(2).mean()).backward()")),
    "a coincidence": gan(
        WGAN.replace("D(fake)", "(D(fake) if it == 3 else D(fake.detach()))")),
    "two tasks": tasks(
        "opt.zero_grad(); of_a.zero_grad(); of_b.zero_grad()\nF.mse_loss(a(body(x)), y).backward()\nof_a.step()\n"
        "F.mse_loss(b(body(x)), -y).backward()\nof_b.step()\nopt.step()"),
    "two losses that balance": tasks(
        "opt.zero_grad()\nh = body(x)\n(h - 1).pow(2).mean().backward(retain_graph=True)\n"
        "(h + 1).pow(2).mean().backward()\nopt.step()"),
    "micro-batches": tasks(
        "opt.zero_grad()\nfor rows in (slice(0, 8), slice(8, 16)):\n"
        "    (F.mse_loss(a(body(x[rows])), y[rows]) / 2).backward()\nopt.step()\nof_a.step()\nof_a.zero_grad()"),
    "a gradient that is reversed": tasks(
        "opt.zero_grad(); of_a.zero_grad(); of_b.zero_grad()\nh = body(x)\nturned = h.clone()\n"
        "turned.register_hook(lambda g: -g)\n(F.mse_loss(a(h), y) + F.mse_loss(b(turned), y)).backward()\n"
        "opt.step(); of_a.step(); of_b.step()"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPPOSED)
def test_gradients_that_cancel_each_other_are_found_and_mended(name, engine, checks):
    text, mended = OPPOSED[name]
    found = checks.of_text(text, engine).found
    assert [str(each) for each in found if each.level != "note"] == []
    (one,) = [each for each in found if each.finding.kind == "opposed-passes"]
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "cancel each other in" in said
    assert said.count("from backward at program.py:") == 2
    assert "the sum is" in said
    assert mended in one.finding.edit.new
    again = checks.of_text(one.finding.edit.applied(text), engine).found
    assert [str(each) for each in again if each.level != "note" or each.finding.kind == "opposed-passes"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ADD_UP)
def test_gradients_that_add_up_are_not_reported(name, engine, checks):
    found = checks.of_text(ADD_UP[name], engine).found
    assert "opposed-passes" not in {one.finding.kind for one in found}


@pytest.mark.parametrize("engine", ENGINES)
def test_contrastive_divergence_of_a_detached_sample_is_right(engine, checks):
    text = """import torch
from torch import nn
torch.manual_seed(0)
enc, energy = nn.Linear(6, 4), nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))
one = torch.optim.Adam(enc.parameters(), 1e-3)
two = torch.optim.Adam(energy.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(32, 6)
    one.zero_grad()
    enc(x).pow(2).mean().backward()
    one.step()
    z = torch.tanh(enc(x)).detach()
    two.zero_grad()
    energy(z).mean().backward()
    (-energy(z + 0.01 * torch.randn(32, 4)).mean()).backward()
    two.step()
"""
    found = checks.of_text(text, engine).found
    assert {one.finding.kind for one in found}.isdisjoint({"opposed-passes", "unchanged"})
