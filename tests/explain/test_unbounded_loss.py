"""Losses that fall without bound because of a sign, each with its line and an edit, and losses that nearly do."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
VAE = """
enc, mu, logvar, dec = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 2), nn.Linear(2, 8)
opt = torch.optim.Adam([*enc.parameters(), *mu.parameters(), *logvar.parameters(), *dec.parameters()], lr=2e-2)
data = torch.randn(32, 3) @ torch.randn(3, 8)
for epoch in range(40):
    h = torch.tanh(enc(data))
    m, s = mu(h), logvar(h)
    z = m + torch.randn_like(m) * torch.exp(0.5 * s)
    rec = F.mse_loss(dec(z), data)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
NET = """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, SIZE))
opt = torch.optim.Adam(net.parameters(), lr=LR)
x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
for epoch in range(40):
    out = net(x)
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def of(program, loss, **words):
    text = program.replace("LOSS", loss.replace("\n", "\n    "))
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


def net(loss, size=3, lr=2e-2):
    return of(NET, loss, SIZE=size, LR=lr)


def with_two_optimizers(loss, option=""):
    """The decoder has an optimizer of its own, and both follow one pass."""
    text = of(VAE, loss).replace(
        ", *dec.parameters()], lr=2e-2)", f"], lr=2e-2)\nother = torch.optim.Adam(dec.parameters(), lr=2e-2{option})"
    )
    return text.replace("opt.zero_grad()", "opt.zero_grad(); other.zero_grad()").replace(
        "opt.step()", "opt.step()\n    other.step()"
    )


UNBOUNDED = {
    "a divergence that two optimizers follow": (
        with_two_optimizers("kl = 0.5 * (1 + s - m.pow(2) - s.exp()).sum() / 32  #!\nloss = rec + kl"),
        ["falls without bound", "loss = rec - kl"],
    ),
    "a divergence with the other sign": (
        of(VAE, "kl = 0.5 * (1 + s - m.pow(2) - s.exp()).sum() / 32  #!\nloss = rec + kl"),
        ["falls without bound", "the part of", "kl = ", "is at least 0", "loss = rec - kl"],
    ),
    "a divergence that is subtracted": (
        of(VAE, "kl = -0.5 * torch.mean(1 + s - m ** 2 - torch.exp(s))\nloss = rec - 2 * kl  #!"),
        ["falls without bound", "loss = rec + 2 * kl"],
    ),
    "a divergence of a function": (
        of(VAE, "loss = rec + kl_of(m, s)").replace(
            "data =", "def kl_of(m, s):\n    return (0.5 * (1 + s - s.exp() - m * m)).sum(1).mean()  #!\n\n\ndata ="),
        ["falls without bound", "loss = rec - kl_of(m, s)"],
    ),
    "a loss that is maximized": (
        net("loss = -F.cross_entropy(out, y)  #!", lr=1e-3),
        ["is subtracted", "loss = F.cross_entropy(out, y)"],
    ),
    "a regularizer that is subtracted": (
        net("fit = F.cross_entropy(out, y)\nloss = fit - 0.1 * out.pow(2).mean()  #!"),
        ["is subtracted", "loss = fit + 0.1 * out.pow(2).mean()"],
    ),
    "distances that are not limited": (
        net("near, far = out[::2], out[1::2]\nloss = near.square().mean() - (near - far).square().mean()  #!", lr=5e-2),
        ["is subtracted"],
    ),
}  # fmt: skip
HEALTHY = {
    "an optimizer that maximizes next to another one": with_two_optimizers(
        "kl = 0.5 * (1 + s - m.pow(2) - s.exp()).sum() / 32\nloss = rec + kl", ", maximize=True"),
    "a divergence": of(VAE, "kl = -0.5 * (1 + s - m.pow(2) - s.exp()).sum() / 32\nloss = rec + kl"),
    "a policy gradient": net(
        "logp = F.log_softmax(out, 1)[torch.arange(32), y]\nloss = -(logp * torch.randn(32)).mean()"),
    "rewards above 0": net("logp = F.log_softmax(out, 1)[torch.arange(32), y]\nloss = -(logp.exp() * 5).mean()"),
    "a bonus for entropy": net(
        "p = out.softmax(1)\nh = -(p * out.log_softmax(1)).sum(1).mean()\nloss = F.cross_entropy(out, y) - 0.1 * h"),
    "a triplet loss": net(
        "near, far = (out[:16] - out[16:]).pow(2).sum(1), (out[:16] - out[16:].flip(0)).pow(2).sum(1)\n"
        "loss = F.relu(near - far + 1).mean()"),
    "a density": net(
        "mean, log = out.chunk(2, 1)\nloss = (log + 0.5 * ((x[:, :1] - mean) / log.exp()) ** 2).mean()", size=2),
    "a similarity": net("loss = 2 - 2 * F.cosine_similarity(out, x[:, :3], dim=1).mean()"),
    "a similarity below 0": net("loss = -F.cosine_similarity(out, x[:, :3], dim=1).mean()"),
    "a score of a critic": net("loss = out[::2].mean() - out[1::2].mean()"),
    "an optimizer that maximizes": net("loss = F.cross_entropy(out, y)", lr="1e-3, maximize=True"),
    "an attack": of(NET, "loss = -F.cross_entropy(net(x + delta), y)", SIZE=3, LR="1e-3").replace(
        "opt = torch.optim.Adam(net.parameters()", "delta = torch.zeros(4, requires_grad=True)\n"
        "opt = torch.optim.Adam([delta]"),
    "an attack with parameters of its own on a net that gets gradients, too": of(
        NET, "loss = -F.cross_entropy(net(x * gain + delta), y)", SIZE=3, LR="2e-1").replace(
        "opt = torch.optim.Adam(net.parameters()",
        "delta, gain = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.ones(4))\n"
        "opt = torch.optim.Adam([delta, gain]"),
    "one number that climbs": """
w = nn.Parameter(torch.tensor([0.5]))
opt = torch.optim.SGD([w], lr=0.1)
for step in range(30):
    loss = -w.pow(2).sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "an image that a network likes best": """
features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()).requires_grad_(False)
image = (torch.randn(1, 3, 16, 16) * 0.1).requires_grad_()
opt = torch.optim.Adam([image], lr=0.05)
for step in range(24):
    loss = -features(image).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "a generator that maximizes what the other minimizes": """
gen, critic = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
one, other = torch.optim.Adam(gen.parameters(), lr=1e-2), torch.optim.Adam(critic.parameters(), lr=1e-2)
for step in range(30):
    fake = gen(torch.randn(16, 2))
    real, zeros = torch.randn(16, 2) + 2, torch.zeros(16, 1)
    judged = F.binary_cross_entropy_with_logits(critic(real), torch.ones(16, 1))
    judged = judged + F.binary_cross_entropy_with_logits(critic(fake.detach()), zeros)
    other.zero_grad(); judged.backward(); other.step()
    fooled = -F.binary_cross_entropy_with_logits(critic(fake), zeros)
    one.zero_grad(); fooled.backward(); one.step()
""",
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_term_with_the_wrong_sign_is_found_and_mended(name, engine, checks):
    program, words = UNBOUNDED[name]
    text = HEAD + program
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    said = "\n".join(row for _, row, _ in lines(one.finding))
    said += one.finding.edit.new if one.finding.edit is not None else ""
    assert (one.finding.kind, one.level) == ("unbounded-loss", "warning")
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    if one.finding.edit is not None:
        found = checks.of_text(one.finding.edit.applied(text), engine).found
        assert [str(other) for other in found if other.level != "note"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_loss_that_may_be_below_zero_is_not_reported(name, engine, checks):
    found = checks.of_text(HEAD + HEALTHY[name], engine).found
    assert "unbounded-loss" not in {one.finding.kind for one in found}
