"""Sums over a batch that are added to the value of each sample, and sums that belong there."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
enc, dec, flow = nn.Linear(6, 4), nn.Linear(2, 6), nn.Linear(2, 1)
table = nn.Parameter(torch.ones(16))
opt = torch.optim.SGD([table, *enc.parameters(), *dec.parameters(), *flow.parameters()], lr=0.001)
def divergence(mu, logvar):
    return 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar)
def total(per_sample, extra):
    return per_sample + 0.5 * torch.sum(extra)  #f
for i in range(3):
    x = torch.randn(16, 6)
    mu, logvar = enc(x).chunk(2, 1)
    z = mu + torch.randn(16, 2) * torch.exp(0.5 * logvar)
    error = (dec(z) - x).pow(2).sum(1)
    log_det = flow(z).squeeze(1)
    BODY
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "a builtin sum": ("elbo = error - sum(log_det)  #!\nloss = torch.mean(elbo)", "#!", "error - log_det"),
    "a method": ("kl = divergence(mu, logvar).sum()  #!\nloss = (error + kl).mean()", "#!", ".sum(dim=1)"),
    "a sum in a function": ("loss = total(error, log_det).mean()", "#f", "0.5 * extra"),
    "a negative sum in two steps": (
        "penalty = -log_det.sum()  #!\nvalues = error + divergence(mu, logvar).sum(1)\nvalues = values + penalty\n"
        "loss = values.mean(0)",
        "#!",
        "-log_det",
    ),
}
RIGHT = {
    "one for each sample": "loss = (error - log_det + divergence(mu, logvar).sum(1)).mean()",
    "a sum divided by the samples": "loss = (error + divergence(mu, logvar).sum() / len(x)).mean()",
    "a mean": "loss = (error + log_det.mean()).mean()",
    "a small weight": "loss = (error + 1e-3 * log_det.pow(2).sum()).mean()",
    "a penalty of weights": "loss = (error + flow.weight.pow(2).sum() + torch.sum(dec.bias ** 2)).mean()",
    "a baseline of the others": "others = (error.sum() - error) / 15\nloss = ((error - others) * log_det).mean()",
    "centered values": "loss = (log_det - 0.5 * log_det.sum()).pow(2).mean() + error.mean()",
    "sums of two losses": "loss = error.sum() + divergence(mu, logvar).sum()",
    "a sum of data": "loss = (error + x.sum(1).sum()).mean()",
    "a penalty of as many weights as samples": "loss = (error + (2 * table).pow(2).sum()).mean()",
    "a sum over features": "loss = (error + (x.t() @ log_det).pow(2).sum()).mean()",
    "a sum over pairs": "loss = (error + 0.2 * (z @ z.t()).pow(2).sum()).mean()",
    "a constant in a softmax": "loss = torch.logsumexp(error + log_det.sum(), 0)",
    "a list of layers": "loss = (error + sum([log_det, log_det * 2])).mean()",
}


def found_in(body, engine, checks):
    text = PROGRAM.replace("BODY", body.replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, [one for one in outcome.found if one.finding.kind == "batch-sum"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_sum_over_the_batch_in_each_sample_is_found(name, engine, checks):
    body, marker, new = WRONG[name]
    text, (one,) = found_in(body, engine, checks)
    assert one.level == "warning"
    assert "adds the sum of a whole batch to each sample" in one.finding.text
    assert "in their mean it weighs 16 times" in one.finding.parts[0].text
    assert text.splitlines()[one.finding.at.line - 1].endswith(marker)
    assert new in one.finding.edit.new
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert after.errors == []
    assert [str(each) for each in after.found if each.finding.kind == "batch-sum"] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_other_sums_are_left_out(name, engine, checks):
    assert [str(one) for one in found_in(RIGHT[name], engine, checks)[1]] == []
