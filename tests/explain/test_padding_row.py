"""Ids of one dimension that are the padding row of an embedding, and padding that is."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
users, items, rating = torch.arange(40) % 5, torch.arange(40) % 8, torch.randn(40)
lengths = torch.tensor([3, 5, 7, 4])
tokens = torch.randint(1, 5, (4, 7)) * (torch.arange(7)[None] < lengths[:, None])
SETUP
opt = torch.optim.Adam([*emb.parameters(), *fc.parameters()], lr=0.01)
for epoch in range(2):
    for b in torch.randperm(40).split(10):
        STEP
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
EMB = "emb, fc = nn.Embedding(5, 4, padding_idx=0), nn.Linear(4, 1)  #!"


def net(step, setup=EMB):
    return HEAD.replace("STEP", step.replace("\n", "\n        ")).replace("SETUP", setup)


RATE = "loss = F.mse_loss(fc(emb(ids)).squeeze(1), rating[:len(ids)])"
USED = {
    "a batch of users": (
        net(f"ids = users[b]\n{RATE}"), ["row 0 of", "never learns", "of 10 ids", "nn.Embedding(5, 4)"]),
    "another row": (
        net(f"ids = users[b]\n{RATE}", EMB.replace("padding_idx=0", "padding_idx=3, max_norm=9.0")),
        ["row 3 of", "of 10 ids", "nn.Embedding(5, 4, max_norm=9.0)"],
    ),
    "ids of a product": (
        net("table = torch.arange(5)[:, None] + torch.zeros(1, 8, dtype=torch.long)\n"
            f"ids = table.flatten()[b]\n{RATE}"),
        ["row 0 of", "of 10 ids"],
    ),
}  # fmt: skip
LARGE = (
    net("ids = torch.arange(16384) % 5\nloss = fc(emb(ids)).pow(2).mean()").replace("padding_idx=0", "padding_idx=2"),
    ["row 2 of", "may be a real id", "16384 ids"],
)
HEALTHY = {
    "ids that begin at 1": net(f"ids = users[b] + 1\n{RATE}", EMB.replace("5, 4", "6, 4")),
    "no padding": net(f"ids = users[b]\n{RATE}", EMB.replace(", padding_idx=0", "")),
    "padding at the end": net("loss = fc(emb(tokens).mean(1)).pow(2).mean()"),
    "padding at the start": net("loss = fc(emb(tokens.flip(1)).mean(1)).pow(2).mean()"),
    "padded tokens as one row": net("loss = fc(emb(tokens.reshape(-1))).pow(2).mean()"),
    "a step of each sequence": net("loss = sum(fc(emb(tokens[:, t])).pow(2).mean() for t in range(7))"),
    "columns of the sequences": net("loss = sum(fc(emb(t)).pow(2).mean() for t in tokens.unbind(1))"),
    "one sequence": net("loss = fc(emb(torch.tensor([1, 2, 3, 0, 0]))).pow(2).mean()"),
}


def used(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "padding-used"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*USED, "ids that were not kept"])
def test_a_padding_row_that_is_an_id_is_found(name, engine, checks):
    text, words = USED.get(name, LARGE)
    (one,) = used(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    said += one.finding.edit.new if one.finding.edit is not None else ""
    assert one.level == "note"
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert (one.finding.edit is None) == (name == "ids that were not kept")
    if one.finding.edit is not None:
        assert used(one.finding.edit.applied(text), engine, checks) == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_padding_is_not_reported(name, engine, checks):
    assert [str(one) for one in used(HEALTHY[name], engine, checks)] == []
