"""Losses that add the mean of a batch and the sum of one, and terms that fit together."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(16, 6), torch.randint(0, 6, (16,))
enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=0.01)
for epoch in range(3):
    m, s = enc(x).chunk(2, 1)
    out = dec(m + torch.exp(0.5 * s) * torch.randn_like(m))
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def net(loss):
    return HEAD.replace("LOSS", loss.replace("\n", "\n    "))


KL = "kl = -0.5 * torch.sum(1 + s - m.pow(2) - s.exp())"
MIXED = {
    "a divergence that is summed": (
        net(f"rec = F.mse_loss(out, x)\n{KL}  #!\nloss = rec + kl"),
        ["(16,6)", "(16,2)", "96 times", 'F.mse_loss(out, x, reduction="sum")'],
    ),
    "parts of the data": (
        net(f"rec = F.mse_loss(out, x)\n{KL}  #!\nloss = rec + kl").replace(
            "x, y = torch.randn(16, 6),", "data, y = torch.randn(32, 6) * 2,").replace(
            "    m, s =", "    x = data.split(16)[epoch % 2]\n    m, s ="),
        ["96 times"],
    ),
    "means and sums by hand": (
        net("kl = (m.pow(2) + s.exp() - s - 1).sum()  #!\nloss = ((out - x) ** 2).mean() + 0.5 * kl"),
        ["96 times", "((out - x) ** 2).sum()"],
    ),
    "a sum of rows": (
        net("rec = F.cross_entropy(out, y)\nkl = (m.pow(2) + s.exp() - s - 1).sum(1).sum()  #!\nloss = kl + rec"),
        ["16", "times", 'F.cross_entropy(out, y, reduction="sum")'],
    ),
}  # fmt: skip
HEALTHY = {
    "both sums": net(f'{KL}\nloss = F.mse_loss(out, x, reduction="sum") + kl'),
    "both means": net("kl = -0.5 * torch.mean(1 + s - m.pow(2) - s.exp())\nloss = F.mse_loss(out, x) + kl"),
    "a sum for each row": net(
        "kl = -0.5 * (1 + s - m.pow(2) - s.exp()).sum(1).mean()\nloss = F.mse_loss(out, x) + kl"),
    "a sum that is divided": net(f"{KL} / x.numel()\nloss = F.mse_loss(out, x) + kl"),
    "a sum over the batch size": net(f"{KL}\nloss = F.mse_loss(out, x) + kl / len(x)"),
    "a sum times one by the batch size": net(f"{KL}\nloss = F.mse_loss(out, x) + 6.0 * ((1.0 / len(x)) * kl)"),
    "a divergence of batches": net(
        'kl = F.kl_div(F.log_softmax(m, 1), F.softmax(x[:, :2], 1), reduction="batchmean")\n'
        "loss = F.cross_entropy(out, y) + 16 * kl"),
    "a small weight": net(f"{KL}\nloss = F.mse_loss(out, x) + 0.001 * kl"),
    "a large weight of the mean": net(f"{KL}\nloss = 96 * F.mse_loss(out, x) + kl"),
    "weights": net("loss = F.mse_loss(out, x) + sum(p.pow(2).sum() for p in enc.parameters())"),
    "a weight with as many rows": net(
        "loss = F.mse_loss(out, x) + 1.0 * big.weight.pow(2).sum()").replace(
        "opt =", "big = nn.Linear(6, 16)\nopt =").replace("[*enc", "[*big.parameters(), *enc"),
}  # fmt: skip


def mixed(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "mean-and-sum"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MIXED)
def test_a_mean_and_a_sum_of_one_batch_are_found(name, engine, checks):
    text, words = MIXED[name]
    (one,) = mixed(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding)) + one.finding.edit.new
    assert one.level == "note"
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mixed(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_terms_that_fit_together_are_not_reported(name, engine, checks):
    assert [str(one) for one in mixed(HEALTHY[name], engine, checks)] == []


VAE = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
grid = torch.linspace(0, 1, 6)
cx, cy = torch.rand(96, 1, 1), torch.rand(96, 1, 1)
data = torch.exp(-((grid[None, None, :] - cx) ** 2 + (grid[None, :, None] - cy) ** 2) / 0.05).flatten(1)
enc, dec = nn.Sequential(nn.Linear(36, 32), nn.Tanh(), nn.Linear(32, 4)), nn.Sequential(
    nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 36), nn.Sigmoid())
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=0.01)
for epoch in range(EPOCHS):
    for x in data.split(32):
        m, s = enc(x).chunk(2, 1)
        out = dec(m + torch.exp(0.5 * s) * torch.randn_like(m))
        LOSS
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def vae(loss, epochs=30):
    return VAE.replace("LOSS", loss.replace("\n", "\n        ")).replace("EPOCHS", f"{epochs}")


ROWS = "kl = -0.5 * (1 + s - m.pow(2) - s.exp()).sum(1).mean()"
COLLAPSED = {
    "an error of all pixels": (
        vae(f"rec = F.mse_loss(out, x)  #!\n{ROWS}\nloss = rec + kl"),
        ['F.mse_loss(out, x, reduction="sum") / len(out)', "rec = mse_loss takes the mean of each row",
         "kl = mul the sum", "36 times"]),
    "a cross entropy in the sum": (
        vae(f"{ROWS}\nloss = F.binary_cross_entropy(out, x) + kl  #!"),
        ['(F.binary_cross_entropy(out, x, reduction="sum") / len(out)) + kl', "36 times"]),
    "a sum over the size of the batch": (
        vae("rec = ((out - x) ** 2).mean()  #!\nkl = -0.5 * torch.sum(1 + s - m * m - s.exp()) / x.size(0)\n"
            "loss = rec + kl"), ["((out - x) ** 2).flatten(1).sum(1).mean()"]),
    "a mean of each row": (
        vae("rec = ((out - x) ** 2).mean(1)  #!\nkl = 0.5 * (m ** 2 + s.exp() - s - 1).sum(1)\n"
            "loss = (rec + kl).mean()"), ["((out - x) ** 2).sum(1)"]),
    "a weight": (
        vae(f"rec = F.mse_loss(out, x)  #!\n{ROWS}\nbeta = min(1.0, (epoch + 1) / 10)\nloss = rec + beta * kl"),
        ['reduction="sum") / len(out)']),
}  # fmt: skip
LIVING = {
    "a sum of each row": vae(f'rec = F.mse_loss(out, x, reduction="sum") / len(x)\n{ROWS}\nloss = rec + kl'),
    "a mean of sums": vae(f"rec = ((out - x) ** 2).sum(1).mean()\n{ROWS}\nloss = rec + kl"),
    "a divergence by pixels": vae(f"rec = F.mse_loss(out, x)\n{ROWS}\nloss = rec + kl / 36"),
    "a small weight": vae(f"rec = F.mse_loss(out, x)\n{ROWS}\nloss = rec + 0.001 * kl"),
    "a few passes": vae(f"rec = F.mse_loss(out, x)\n{ROWS}\nloss = rec + kl", 3),
    "free bits": vae(
        "rec = F.mse_loss(out, x)\nkl = (0.5 * (m ** 2 + s.exp() - s - 1)).mean(0).clamp(min=0.05).sum()\n"
        "loss = rec + kl"),
    "squares of activations": vae("loss = F.mse_loss(out, x) + 0.1 * m.pow(2).sum(1).mean()"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COLLAPSED)
def test_a_divergence_that_falls_to_nothing_next_to_a_mean_of_pixels_is_a_note(name, engine, checks):
    text, words = COLLAPSED[name]
    (one,) = mixed(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding)) + one.finding.edit.new
    assert one.level == "note"
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert mixed(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LIVING)
def test_a_divergence_that_fits_or_lives_is_not_reported(name, engine, checks):
    assert [str(one) for one in mixed(LIVING[name], engine, checks)] == []
