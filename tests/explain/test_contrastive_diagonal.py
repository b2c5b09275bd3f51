"""Contrastive losses that compare each row also with itself, and those that leave it out."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
net = nn.Linear(6, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(8, 6)
partners = (torch.arange(16) + 8) % 16
for step in range(2):
    views = [x + 0.1 * torch.randn(8, 6) for _ in range(2)]
    z1, z2 = (F.normalize(net(view), dim=1) for view in views)
    z = torch.cat([z1, z2])
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ITSELF = {
    "a product": "sim = z @ z.t()  #!\nloss = F.cross_entropy(sim / 0.1, partners)",
    "a scaled product": "sim = torch.mm(z, z.T) * 10  #!\nloss = nn.CrossEntropyLoss()(sim, partners)",
    "log-probabilities": "sim = torch.matmul(z, z.transpose(0, 1)) / 0.5  #!\n"
    "loss = F.nll_loss(F.log_softmax(sim, dim=1), partners)",
}  # fmt: skip
LEFT_OUT = {
    "a mask": "sim = (z @ z.t() / 0.1).masked_fill(torch.eye(16, dtype=torch.bool), float('-inf'))\n"
    "loss = F.cross_entropy(sim, partners)",
    "a large number is subtracted": "loss = F.cross_entropy(z @ z.t() / 0.1 - 1e9 * torch.eye(16), partners)",
    "a weight for each pair": "loss = F.cross_entropy((z @ z.t()) * (1 - torch.eye(16)), partners)",
    "two views": "loss = F.cross_entropy(z1 @ z2.t() / 0.1, torch.arange(8))",
    "both directions": "s = z1 @ z2.t()\nn = torch.arange(8)\nloss = F.cross_entropy(s, n) + F.cross_entropy(s.t(), n)",
    "others as candidates": "rest = ~torch.eye(16, dtype=torch.bool)\nsim = (z @ z.t())[rest].view(16, 15)\n"
    "loss = F.cross_entropy(sim, partners % 15)",
    "a diagonal that is filled in place": "sim = z @ z.t()\nwith torch.no_grad():\n    sim.fill_diagonal_(-1e9)\n"
    "loss = F.cross_entropy(sim, partners)",
    "prototypes that are pushed apart": "p = F.normalize(net.weight.t(), dim=1)\n"
    "loss = F.cross_entropy(z1 @ p.t(), torch.arange(8) % 4) + F.cross_entropy(p @ p.t() / 0.1, torch.arange(6))",
    "rows of a table that are pushed apart": "table = F.normalize(F.embedding(torch.arange(4), net.weight), dim=1)\n"
    "loss = F.cross_entropy(table @ table.t() / 0.1, torch.arange(4)) + z.pow(2).mean()",
    "a table of pairs": "loss = F.cross_entropy(net.weight @ net.weight.t(), torch.tensor([1, 2, 3, 0]))",
    "classes": "loss = F.cross_entropy(z @ torch.eye(4, 16), partners)",
}  # fmt: skip


def text_of(loss):
    return PROGRAM.replace("LOSS", loss.replace("\n", "\n    "))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ITSELF)
def test_a_row_that_is_its_own_candidate_is_found_and_masked(name, engine, checks):
    text = text_of(ITSELF[name])
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert (one.finding.kind, one.level) == ("own-similarity", "warning")
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "is also compared with itself" in one.finding.text
    after = checks.of_text(one.finding.edit.applied(text), engine)
    assert (after.errors, [str(each) for each in after.found if each.level != "note"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_line_that_is_the_loss_itself_is_not_masked(engine, checks):
    text = text_of("loss = F.cross_entropy(z @ z.t() / 0.1, partners)")
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert one.finding.edit is None
    assert "sim.masked_fill(" in one.finding.fix


@pytest.mark.parametrize("engine", ENGINES)
def test_targets_that_are_the_rows_themselves_are_found(engine, checks):
    text = text_of("loss = F.cross_entropy(z @ z.t() / 0.1, torch.arange(16))")
    (one,) = [each for each in checks.of_text(text, engine).found if each.level != "note"]
    assert "is the row itself" in one.finding.text
    assert "z1 @ z2.T" in "\n".join(row for _, row, _ in lines(one.finding))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LEFT_OUT)
def test_similarities_without_the_own_one_are_no_finding(name, engine, checks):
    outcome = checks.of_text(text_of(LEFT_OUT[name]), engine)
    assert outcome.errors == []
    assert "own-similarity" not in [one.finding.kind for one in outcome.found]
