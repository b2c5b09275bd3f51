"""Terms of a loss that are one number in every pass, and terms that change, or that are meant to be constant."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net, gate, out = nn.Linear(6, 8), nn.Linear(6, 4), nn.Linear(8, 3)
fixed = torch.softmax(torch.randn(4), 0)
scale = nn.Parameter(torch.tensor(2.0))
opt = torch.optim.SGD([*net.parameters(), *gate.parameters(), *out.parameters()], lr=0.2)
def usage(p):
    return torch.bincount(p.argmax(1), minlength=4).float() / len(p)
def balance(fraction, score):
    return 4 * torch.sum(fraction.unsqueeze(1) * score.unsqueeze(0))  #b
for i in range(6):
    x, y = 2 * torch.randn(16, 6), torch.randint(0, 3, (16,))
    h, p = net(x), torch.softmax(gate(x), 1)
    BODY
    loss = F.cross_entropy(out(h), y) + 0.1 * p.pow(2).sum(1).mean() + 0.1 * aux
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG = {
    "an outer product of two distributions": ("warning", "aux = balance(usage(p), p.mean(0))", "#b"),
    "a mean of rows that sum to 1": ("warning", "aux = p.sum(1).mean()  #!", "#!"),
    "the scores of two experts": (
        "warning",
        "top, place = p.topk(2, 1)\ntop = top / top.sum(-1, keepdim=True)\naux = (top * 0.5).sum()  #!",
        "#!",
    ),
    "weights of attention by a product": (
        "warning",
        "w = torch.softmax(h @ h.t(), 1)\naux = (w @ torch.ones(16, 1)).mean()  #!",
        "#!",
    ),
    "a sum of weights that the model uses": (
        "warning", "w = torch.exp(gate(x))\nw = w / w.sum(1, keepdim=True)\nh = h * w[:, :1]\naux = w.sum()  #!", "#!"),
    "the length of normalized rows": ("note", "z = F.normalize(h, dim=1)\naux = z.pow(2).sum(1).mean()  #!", "#!"),
}  # fmt: skip
RIGHT = {
    "a likelihood of counts with rates of a known total": "counts = torch.ones(16, 8)\n"
    "rate = 30.0 * torch.softmax(h, 1)\naux = rate.sum() - (counts * rate.log()).sum()",
    "a divergence of distributions": "q = torch.softmax(h, 1)\naux = (q * (q / 0.125).log()).sum() - q.sum() + 16.0",
    "a cost of amounts that are distributed": "trips = torch.arange(1.0, 17.0)[:, None] * torch.softmax(h, 1)\n"
    "toll = 0.5 * trips.sum()\naux = trips.pow(2).sum() + toll",
    "a fee on shares that are searched for": "w = torch.softmax(gate.bias, 0)\n"
    "aux = (p.detach() @ w).var() + 0.01 * w.sum()",
    "nan from the second pass on": "aux = 3.0 + (h * (0.0 if i == 0 else float('nan'))).sum()",
    "a balance of experts": "aux = 4 * torch.sum(usage(p) * p.mean(0))",
    "an entropy": "aux = (p * p.log()).sum(1).mean()",
    "an entropy of a fixed distribution": "aux = scale * (fixed * fixed.log()).sum()",
    "a weight that no optimizer trains": "aux = scale * 2.0",
    "a divergence with free bits": "aux = torch.clamp((h.pow(2) * 1e-3).sum(1), min=50.0).mean()",
    "a hinge that is always on": "aux = (1 - F.relu(-h.pow(2))).mean()",
    "a number of choices": "aux = ((p > 0.5).float() * 1.0 + 0.0 * p).round().clamp(max=0).mean() + 1.0",
    "a distance of normalized rows": "z, t = F.normalize(h, dim=1), F.normalize(x[:, :1] + h.detach(), dim=1)\n"
    "aux = (2 - 2 * (z * t).sum(1)).mean()",
    "a term that is 0": "aux = (h - h).sum()",
    "a weight times normalized data": "aux = scale * torch.softmax(x, 1).sum(1).mean()",
    "a penalty of weights": "aux = gate.weight.pow(2).sum()",
}


def found_in(body, engine, checks):
    text = PROGRAM.replace("BODY", body.replace("\n", "\n    "))
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return text, {one.finding.kind: one for one in outcome.found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRONG)
def test_a_constant_term_is_found(name, engine, checks):
    level, body, marker = WRONG[name]
    text, found = found_in(body, engine, checks)
    one = found["constant-term"]
    assert one.level == level
    assert text.splitlines()[one.finding.at.line - 1].endswith(marker)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert "in every backward pass: it trains nothing" in said
    assert "in all 6 passes" in said


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_term_that_changes_or_is_meant_to_be_constant_is_left_out(name, engine, checks):
    assert "constant-term" not in found_in(RIGHT[name], engine, checks)[1]


WHOLE = """
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(6, 3), torch.randn(16, 6)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    loss = LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("loss", ["net(x).softmax(1).mean()", "2 * torch.softmax(net(x), 1).sum() / 16"])
def test_a_loss_that_adds_up_a_softmax_is_constant_and_nothing_else_is_wrong(loss, engine, checks):
    outcome = checks.of_text(WHOLE.replace("LOSS", loss), engine)
    (one,) = outcome.found
    assert (one.finding.kind, one.level) == ("constant-term", "warning")
    assert "adds up to 1 whatever the parameters are" in one.finding.parts[0].text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "loss",
    ["net(x).softmax(1)[:, 0].mean()", "-net(x).log_softmax(1).mean()", "(net(x).softmax(1) * x[:, :3]).sum()",
     "(0 * net(x)).sum() + 2"],
)  # fmt: skip
def test_a_loss_of_a_part_of_a_softmax_is_not_said_to_be_constant(loss, engine, checks):
    for rate in ("0.1", "0.0"):
        outcome = checks.of_text(WHOLE.replace("LOSS", loss).replace("lr=0.1", f"lr={rate}"), engine)
        assert "constant-term" not in {one.finding.kind for one in outcome.found}
