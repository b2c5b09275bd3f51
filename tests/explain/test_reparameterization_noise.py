"""Noise that is multiplied by a power of a deviation: that of the Gaussian in the loss, or another."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
encoder, mean, scale, decoder = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 3), nn.Linear(3, 4)
opt = torch.optim.Adam([p for one in (encoder, mean, scale, decoder) for p in one.parameters()], lr=0.01)
def kl_of(mu, logvar):
    return -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
def sample(mu, std):
    return mu + torch.randn_like(std) * std
for i in range(2):
    x = torch.randn(16, 4)
    h = torch.tanh(encoder(x))
    mu, s = mean(h), scale(h)
    eps = torch.randn_like(mu)
    BODY
    loss = (decoder(z) - x).pow(2).sum(1).mean() + kl
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
KL = "\nkl = -0.5 * (1 + s - mu.pow(2) - s.exp()).sum(1).mean()"
KL_OF_DEVIATION = "\nkl = -0.5 * (1 + 2 * s - mu ** 2 - torch.exp(2 * s)).sum(1).mean()"
KL_OF_POSITIVE = "\nkl = 0.5 * (var + mu ** 2 - 1 - torch.log(var)).mean()"
WRONG = {
    "a variance": ("z = mu + eps * torch.exp(s)  #!" + KL, "torch.exp(0.5 * s)"),
    "a variance as a method": ("z = eps.mul(s.exp()) + mu  #!" + KL, "(0.5 * s).exp()"),
    "a variance that a function gets": ("std = s.exp()\nz = sample(mu, std)\nkl = kl_of(mu, s)", None),
    "a deviation whose root is taken": ("z = mu + eps * torch.exp(0.5 * s)  #!" + KL_OF_DEVIATION, None),
    "a variance of the logarithm of a deviation": (
        "z = mu + eps * torch.exp(2 * s)  #!" + KL_OF_DEVIATION,
        None,
    ),
    "a variance that is positive": ("var = F.softplus(s) + 1e-4\nz = mu + eps * var  #!" + KL_OF_POSITIVE, None),
    "a weighted divergence": (
        "z = mu + eps * torch.exp(s)  #!" + KL.replace("kl = -0.5 *", "kl = -0.05 *"),
        "torch.exp(0.5 * s)",
    ),
}
RIGHT = {
    "half a logarithm": "z = mu + eps * torch.exp(0.5 * s)" + KL,
    "half a logarithm by division": "z = mu + torch.exp(s / 2) * eps" + KL,
    "a root": "z = mu + eps * s.exp().sqrt()" + KL,
    "a power": "z = mu + eps * s.exp() ** 0.5" + KL,
    "the logarithm of a deviation": "z = mu + eps * torch.exp(s)" + KL_OF_DEVIATION,
    "a root of a positive variance": "var = F.softplus(s) + 1e-4\nz = mu + eps * var.sqrt()" + KL_OF_POSITIVE,
    "a positive deviation": "std = F.softplus(s) + 1e-4\nz = mu + eps * std\n"
    "kl = 0.5 * (std ** 2 + mu ** 2 - 1 - 2 * torch.log(std)).mean()",
    "a function": "z = sample(mu, torch.exp(0.5 * s))\nkl = kl_of(mu, s)",
    "no divergence": "z = mu + eps * torch.exp(s)\nkl = 0.01 * mu.pow(2).mean()",
    "a product that is no sample": "z = mu * torch.exp(s) + eps * torch.exp(0.5 * s)" + KL,
    "noise of another kind": "z = mu + torch.exp(0.5 * s) * eps + (torch.exp(s) * eps).mean()" + KL,
}


def found_in(body, engine, checks):
    text = PROGRAM.replace("BODY", body.replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "noise-scale"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_noise_of_another_scale_is_found(name, engine, checks):
    body, mended = WRONG[name]
    text, (one,) = found_in(body, engine, checks)
    assert one.level == "warning"
    line = text.splitlines()[one.finding.at.line - 1]
    assert line.endswith("#!") or "torch.randn_like(std) * std" in line
    assert "the standard deviation" in one.finding.fix
    assert (mended or "") in (one.finding.edit.new if one.finding.edit else "")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_noise_of_the_right_scale_is_no_finding(name, engine, checks):
    assert [str(one) for one in found_in(RIGHT[name], engine, checks)[1]] == []


BAYESIAN = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)

class Layer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(n_out, n_in) * 0.3)
        self.log_sigma = nn.Parameter(torch.full((n_out, n_in), -2.0))
        self.other = nn.Parameter(torch.full(OTHER, -2.0))
        self.bias = nn.Parameter(torch.zeros(n_out))
    def forward(self, x):
        FORWARD
    def kl(self):
        DIVERGENCE

net = nn.Sequential(Layer(1, 8), nn.Tanh(), Layer(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.05)
x = torch.linspace(-1, 1, 20).unsqueeze(1)
y = torch.sin(3 * x)
for step in range(4):
    loss = F.mse_loss(net(x), y, reduction="sum") + net[0].kl() + net[2].kl()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OF_WEIGHTS = "w = self.mu + self.log_sigma.exp() * torch.randn(self.mu.shape)\n        return F.linear(x, w, self.bias)"
OF_RESULTS = (
    "mean = F.linear(x, self.mu, self.bias)\n"
    "        var = F.linear(x.pow(2), torch.exp(2 * self.log_sigma))\n"
    "        return mean + (var + 1e-8).sqrt() * torch.randn_like(mean)"
)
CLOSED = "return (0.5 * (self.mu.pow(2) + (2 * s).exp() - 1) - s).sum()"
OF_OTHER = f"s = self.other  #!\n        {CLOSED}"
SAMPLED = (
    "w = self.mu + self.other.exp() * torch.randn(self.mu.shape)  #!\n"
    "        return (0.5 * w.pow(2) - 0.5 * ((w - self.mu) / self.other.exp()).pow(2) - self.other).sum()"
)
DIVERGENCES_OF_OTHERS = {
    "noise of the weights": ("(n_out, n_in)", OF_WEIGHTS, OF_OTHER),
    "noise of the results": ("(n_out, n_in)", OF_RESULTS, OF_OTHER),
    "a sample": ("(n_out, n_in)", OF_WEIGHTS, SAMPLED),
    "one number for all": ("(1, 1)", OF_RESULTS, OF_OTHER),
}
OF_ONE = f"s = self.log_sigma\n        {CLOSED}"
DIVERGENCES_OF_THE_SAME = {
    "without a learned prior": ("(1,)", OF_WEIGHTS, OF_ONE),
    "a learned prior": (
        "(1,)",
        OF_WEIGHTS,
        "s, p = self.log_sigma, self.other\n"
        "        return (p - s + 0.5 * ((2 * s).exp() + self.mu.pow(2)) / (2 * p).exp() - 0.5).sum()",
    ),
    "a learned prior for each weight": (
        "(n_out, n_in)",
        OF_RESULTS,
        "s, p = self.log_sigma, self.other\n"
        "        return (p - s + 0.5 * ((2 * s).exp() + self.mu.pow(2)) / (2 * p).exp() - 0.5).sum()",
    ),
    "a learned precision of fixed weights": (
        "(n_out, n_in)",
        "return F.linear(x, self.mu, self.bias) * self.log_sigma.exp().mean()",
        "return (self.mu.pow(2) * self.other.exp() - self.other).sum()",
    ),
    "a parameter that is not used": ("(1,)", OF_WEIGHTS, "return 0.01 * self.mu.pow(2).sum()"),
}


def scales_of_others(one, engine, checks):
    shape, forward, divergence = one
    text = BAYESIAN.replace("OTHER", shape)
    text = text.replace("FORWARD", forward).replace("DIVERGENCE", divergence)
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [found for found in outcome.found if found.finding.kind == "noise-scale"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DIVERGENCES_OF_OTHERS)
def test_a_divergence_of_a_parameter_that_scales_no_noise_is_found(name, engine, checks):
    text, (one,) = scales_of_others(DIVERGENCES_OF_OTHERS[name], engine, checks)
    assert one.level == "warning"
    assert "other is in the divergence" in one.finding.text
    assert "log_sigma scales the noise" in one.finding.text
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    edit = one.finding.edit
    assert (edit is not None and edit.new.strip()) == ("s = self.log_sigma  #!" if "noise" in name else False)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DIVERGENCES_OF_THE_SAME)
def test_a_divergence_of_the_scale_of_the_noise_is_right(name, engine, checks):
    assert scales_of_others(DIVERGENCES_OF_THE_SAME[name], engine, checks)[1] == []
