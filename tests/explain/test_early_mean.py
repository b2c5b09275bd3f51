"""Means that are taken before each sample gets its own weight: focal losses, returns, and weights of samples."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
x, y = torch.randn(12, 5), torch.arange(12) % 3
net, value = nn.Linear(5, 3), nn.Linear(5, 1)
opt = torch.optim.SGD([*net.parameters(), *value.parameters()], lr=0.1)
returns = torch.randn(12)
normal = (returns - returns.mean()) / (returns.std() + 1e-8)
weights = torch.rand(12) + 0.1
old, real = torch.rand(12).log(), torch.arange(12).remainder(4).ne(3).float()
DEF
for step in range(3):
    out, v = net(x), value(x)
    log_probs = F.log_softmax(out, 1).gather(1, y[:, None])[:, 0]
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(loss, functions=""):
    return HEAD.replace("LOSS", loss.replace("\n", "\n    ")).replace("DEF", functions) + "    v.sum()\n"


FOCAL = """
class Focal(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.5):
        super().__init__()
        self.gamma, self.alpha, self.ce = gamma, alpha, nn.CrossEntropyLoss()

    def forward(self, scores, target):
        logpt = -self.ce(scores, target)  #!
        pt = logpt.exp()
        return self.alpha * -((1 - pt) ** self.gamma) * logpt


focal = Focal()
"""
KEPT = """
def reinforce(log_probs, returns):
    return -(log_probs.sum() * returns).mean()  #!
"""
MISTAKES = {
    "a focal loss with a mean at the end": (
        program("ce = F.cross_entropy(out, y)  #!\npt = torch.exp(-ce)\nloss = (0.25 * (1 - pt) ** 2 * ce).mean()"),
        "warning", "12 losses", 'F.cross_entropy(out, y, reduction="none")'),
    "a focal loss of one class": (
        program("bce = F.binary_cross_entropy_with_logits(v[:, 0], (y > 0).float())  #!\npt = torch.exp(-bce)\n"
                "loss = 0.25 * (1 - pt).pow(2) * bce"),
        "note", "12 losses", ""),
    "a focal loss in a module": (program("loss = focal(out, y)", FOCAL), "note", "12 losses", ""),
    "a focal loss whose weight is a constant": (
        program("ce = F.cross_entropy(out, y)  #!\nwith torch.no_grad():\n    pt = (-ce).exp()\n"
                "loss = ce * (1 - pt) ** 2"),
        "note", "12 losses", ""),
    "a focal loss of log-probabilities": (
        program("nll = -log_probs.mean()  #!\nloss = (1 - torch.exp(-nll)) ** 2 * nll"), "note", "12 losses", ""),
    "a mean of log-probabilities and normalized returns": (
        program("mean = log_probs.mean()\nloss = -torch.sum(mean * normal)  #!"),
        "warning", "adds up to", "-torch.sum(log_probs * normal)"),
    "a mean and returns on one line": (
        program("loss = -(log_probs.mean() * returns).sum()  #!"),
        "note", "12 numbers", "-(log_probs * returns).sum()"),
    "a sum in a function": (
        program("loss = reinforce(log_probs, normal)", KEPT), "warning", "adds up to", "-(log_probs * returns).mean()"),
    "a sum of a list": (
        program("loss = -(sum([each for each in log_probs]) * returns).sum()  #!"), "note", "12 numbers", ""),
    "a mean over the steps of several episodes": (
        program("each = log_probs.view(4, 3).mean(0)\nloss = -(each * returns.view(4, 3)).mean()  #!"),
        "note", "4 numbers", ""),
    "weights of samples for a mean of squares": (
        program("loss = (F.mse_loss(v[:, 0], returns) * weights).mean()  #!"),
        "note", "12 numbers", 'F.mse_loss(v[:, 0], returns, reduction="none")'),
    "weights of samples for a loss of classes": (
        program("ce = F.cross_entropy(out, y)\nloss = torch.mean(weights * ce)  #!"), "note", "12 numbers", ""),
    "a ratio of two means": (
        program("ratio = (log_probs.mean() - old.mean()).exp()  #!\n"
                "loss = -torch.min(ratio * returns, ratio.clamp(0.8, 1.2) * returns).mean()"),
        "note", "one ratio for 12 samples", ""),
    "a ratio of a mean of differences": (
        program("ratio = torch.exp((log_probs - old).mean())  #!\nloss = -(ratio * returns).mean()"),
        "note", "same ratio", "torch.exp(log_probs - old)"),
    "a clipped ratio and normalized advantages": (
        program("difference = (log_probs - old).mean()  #!\nratio = difference.clamp(-5, 5).exp()\n"
                "loss = -torch.minimum(ratio * normal, torch.clip(ratio, 0.8, 1.2) * normal).mean()"),
        "warning", "adds up to", "difference = log_probs - old"),
    "a ratio of a masked mean over tokens of all sequences": (
        program("pair = ((log_probs - old) * real).view(3, 4)\nratio = (pair.sum() / real.sum()).exp()  #!\n"
                "loss = -(ratio * returns[:3]).mean() + 0 * v.mean()"),
        "note", "each of", ""),
    "a quotient of two exponentials": (
        program("ratio = log_probs.mean().exp() / old.mean().exp()  #!\n"
                "loss = torch.max(-returns * ratio, -returns * ratio.clamp(0.8, 1.2)).mean()"),
        "note", "one ratio for 12 samples", ""),
    "returns in a loop": (
        program("mean, loss = log_probs.mean(), 0.0\nfor R in returns:\n    loss = loss - mean * R  #!"),
        "note", "12 products", ""),
}  # fmt: skip
HEALTHY = {
    "a ratio of each sample": program(
        "ratio = (log_probs - old).exp()\n"
        "loss = -torch.min(ratio * normal, ratio.clamp(0.8, 1.2) * normal).mean()"),
    "a ratio of each sequence": program(
        "ratio = (log_probs - old).view(3, 4).mean(1).exp()\n"
        "loss = -torch.min(ratio * returns[:3], ratio.clamp(0.9, 1.1) * returns[:3]).mean()"),
    "a ratio of each sequence for its tokens": program(
        "ratio = (log_probs - old).view(3, 4).mean(1, keepdim=True).exp()\n"
        "adv = returns[:3, None].expand(3, 4)\nloss = -torch.min(ratio * adv, ratio.clamp(0.9, 1.1) * adv).mean()"),
    "the ratios of sequences in a loop": program(
        "pair, loss = (log_probs - old).view(3, 4), 0.0\nfor each, R in zip(pair, returns[:3]):\n"
        "    ratio = each.mean().exp()\n    loss = loss - torch.min(ratio * R, ratio.clamp(0.9, 1.1) * R)"),
    "the ratio of one sequence whose tokens have one advantage": program(
        "ratio = (log_probs - old).mean().exp()\nloss = -(ratio * torch.full((12,), 0.7)).mean()"),
    "a divergence of means with a coefficient": program(
        "loss = -((log_probs - old).exp() * returns).mean() + 0.1 * (log_probs - old).mean().exp()"),
    "a temperature that is learned": program(
        "loss = (net.bias.mean().exp() * returns).mean() + F.cross_entropy(out, y)"),
    "each log-probability with its return": program("loss = -(log_probs * normal).sum()"),
    "the return of a whole episode": program("loss = -log_probs.sum() * returns.sum()"),
    "a sum over the dimensions of an action": program(
        "loss = -(F.log_softmax(out, 1).mul(F.one_hot(y, 3)).sum(1) * returns).mean()"),
    "a loss of each sample with its weight": program(
        "loss = (F.cross_entropy(out, y, reduction='none') * weights).mean()"),
    "a focal loss": program(
        "ce = F.cross_entropy(out, y, reduction='none')\nloss = ((1 - torch.exp(-ce)) ** 2 * ce).mean()"),
    "an uncertainty that is learned": program(
        "mse = F.mse_loss(v[:, 0], returns)\ns = net.bias.mean()\nloss = torch.exp(-s) * mse + s"),
    "a root and a logarithm of a mean": program(
        "mse = F.mse_loss(v[:, 0], returns)\nloss = mse.sqrt() + torch.log(mse)"),
    "a loss that stays above a level": program("ce = F.cross_entropy(out, y)\nloss = (ce - 0.1).abs() + 0.1"),
    "a perplexity that is only read": program(
        "loss = F.cross_entropy(out, y)\nperplexity = torch.exp(loss.detach()) * loss.detach()"),
    "weights of tasks": program(
        "terms = torch.stack([F.cross_entropy(out, y), F.mse_loss(v[:, 0], returns)])\n"
        "loss = (terms * torch.tensor([0.3, 0.7])).sum()"),
    "a term for each of several weights": program(
        "loss = sum(w * F.mse_loss(v[:, 0] * w, returns) for w in (0.1, 0.2, 0.3))"),
    "a ratio of a sequence for each of its kept tokens": program(
        "rows = log_probs.view(4, 3)\nmask = torch.tensor([[1.0, 1.0, 0.0]]).expand(4, 3)\n"
        "loss = -(rows.mean(1, keepdim=True) * mask).sum() / mask.sum()"),
    "weights of rows": program("loss = (log_probs.view(4, 3).mean(1) * weights[:4]).sum()"),
    "weights that are all the same": program("loss = -(log_probs.mean() * torch.full((12,), 0.5)).sum()"),
    "a mean of each row that has a weight of its own": program(
        "rows = log_probs.view(4, 3).mean(1, keepdim=True) * v[:4]\nloss = -(rows * returns.view(4, 3)).sum()"),
    "a sum of numbers that are weighted by themselves": program(
        "loss = (log_probs.sum() * (log_probs.detach().exp() - 1)).mean()"),
    "a mean of weights": program("loss = (net.weight.mean() * torch.randn(3, 5)).sum() + F.cross_entropy(out, y)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mean_before_the_weights_is_found(name, engine, checks):
    text, level, words, mended = MISTAKES[name]
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = (one for one in outcome.found if one.finding.kind == "early-mean")
    assert one.level == level
    assert words in "\n".join(row for _, row, _ in lines(one.finding))
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is not None) is bool(mended)
    assert mended in (one.finding.edit.new if one.finding.edit is not None else "")
    assert {"vanishing", "cancelled", "unchanged"}.isdisjoint(each.finding.kind for each in outcome.found)
    if mended:
        again = checks.of_text(one.finding.edit.applied(text), engine)
        assert (again.errors, [each for each in again.found if each.finding.kind == "early-mean"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_mean_with_right_weights_is_not_found(name, engine, checks):
    outcome = checks.of_text(HEALTHY[name], engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.finding.kind == "early-mean"] == []
