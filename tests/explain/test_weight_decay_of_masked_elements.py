"""Elements with a masked gradient that weight decay changes, and those that it leaves alone or is to shrink."""

import pytest

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
ROWS, SIZE = SHAPE
emb = nn.Embedding(ROWS, SIZE)
head = nn.Linear(SIZE, 2)
w = emb.weight
keep = torch.arange(ROWS) < ROWS // 2
mask = torch.ones(ROWS, SIZE)
mask[keep] = 0
masks = {"0.weight": mask}
old = w.detach().clone()
BEFORE
opt = OPTIMIZER  #!
for step in range(6):
    ids = torch.randint(ROWS, (64, 4))
    loss = nn.functional.cross_entropy(head(emb(ids).mean(1)), torch.ones(64, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    MASK
    opt.step()
    AFTER
"""
ADAMW = "torch.optim.AdamW(emb.parameters(), lr=0.05, weight_decay=0.1)"
SMALL, LARGE = "20, 4", "300, 64"
"""Sizes of the parameter: the elements are recorded, or statistics only."""


def masked(mask, before="pass", after="pass", optimizer=ADAMW, shape=SMALL):
    text = PROGRAM.replace("SHAPE", shape).replace("BEFORE", before).replace("OPTIMIZER", optimizer)
    return text.replace("MASK", mask.replace("\n", "\n    ")).replace("AFTER", after.replace("\n", "\n    "))


METHOD = """
class Freezer:
    def __init__(self, mask):
        self.mask = mask

    def __call__(self):
        w.grad.mul_(self.mask)

freeze = Freezer(mask)
"""
FUNCTION = """
def freeze():
    w.grad[keep] = 0.0
"""
EACH = "for name, p in nn.Sequential(emb, head).named_parameters():\n    if name in masks:\n        "
CHANGED = {
    "an index": masked("w.grad[keep] = 0.0"),
    "rows": masked("w.grad[:10].zero_()"),
    "a factor": masked("w.grad *= mask"),
    "a product": masked("w.grad = w.grad * mask"),
    "through data": masked("w.grad.data = w.grad.data * mask"),
    "SGD": masked("w.grad.mul_(mask)", optimizer="torch.optim.SGD(emb.parameters(), lr=0.1, weight_decay=0.1)"),
    "Adam": masked("w.grad.mul_(mask)", optimizer="torch.optim.Adam(emb.parameters(), lr=0.1, weight_decay=0.01)"),
    "a hook after backward": masked("pass", "def masking(p):\n    p.grad[keep] = 0\n\n"
                                    "w.register_post_accumulate_grad_hook(masking)"),
    "clipped": masked("w.grad[keep] = 0\nnn.utils.clip_grad_norm_(emb.parameters(), 0.01)"),
    "all but the first step": masked("if step:\n    w.grad[keep] = 0"),
    "more parameters": masked("w.grad[keep] = 0", optimizer="torch.optim.AdamW([*emb.parameters(), "
                              "*head.parameters()], weight_decay=0.1, lr=0.1)"),
    "large: an index": masked("w.grad[keep] = 0.0", shape=LARGE),
    "large: a factor": masked("w.grad *= mask", shape=LARGE),
    "large: masks of a dict": masked(EACH + "p.grad.mul_(masks[name])", shape=LARGE),
    "large: a name for the mask": masked(EACH + "m = masks[name]\n        p.grad.mul_(m)", shape=LARGE),
    "large: a method": masked("freeze()", METHOD, shape=LARGE),
    "large: a function": masked("freeze()", FUNCTION, shape=LARGE),
}  # fmt: skip
RESTORED = "with torch.no_grad():\n    w[keep] = old[keep]"
LEFT = {
    "no decay": masked("w.grad[keep] = 0", optimizer=ADAMW.replace("0.1)", "0.0)")),
    "a group without decay": masked("w.grad[keep] = 0", optimizer="torch.optim.AdamW([{'params': emb.parameters(), "
                                    "'weight_decay': 0.0}, {'params': head.parameters()}], weight_decay=0.1)"),
    "a rate of 0": masked("w.grad[keep] = 0", optimizer=ADAMW.replace("lr=0.05", "lr=0.0")),
    "written back": masked("w.grad[keep] = 0", after=RESTORED),
    "written back by data": masked("w.grad[keep] = 0", after="w.data[keep] = old[keep]"),
    "pruned": masked("w.grad *= mask", "w.data.mul_(mask)"),
    "a padding row of zeros": masked("w.grad[0] = 0", "w.data[0] = 0"),
    "all of the gradient": masked("w.grad[torch.arange(20) >= 0] = 0"),
    "now and then": masked("if step % 3 == 0:\n    w.grad[keep] = 0"),
    "drawn in each step": masked("w.grad *= (torch.rand(20, 4) > 0.5)"),
    "the largest only": masked("w.grad[w.grad.abs() < w.grad.abs().median()] = 0"),
    "by the batch": masked("w.grad[ids[:, 0]] = 0"),
    "in turns": masked("w.grad[keep if step % 2 else ~keep] = 0"),
    "clipped only": masked("nn.utils.clip_grad_value_(emb.parameters(), 0.001)"),
    "by a hook": masked("pass", "w.register_hook(lambda g: g * mask)"),
    "large: written back": masked("w.grad[keep] = 0", after=RESTORED, shape=LARGE),
    "large: pruned": masked("w.grad *= mask", "w.data.mul_(mask)", shape=LARGE),
    "large: drawn in each step": masked("drawn = torch.rand(300, 64) > 0.5\nw.grad *= drawn", shape=LARGE),
    "large: the largest only": masked(
        "few = w.grad.abs() < w.grad.abs().median()\nw.grad.masked_fill_(few, 0.0)", shape=LARGE),
    "large: a part of the batch": masked("w.grad[ids[:, 0]] = 0", shape=LARGE),
    "large: a name for the gradient": masked("g = w.grad\ng[g.abs() < 1e-4] = 0", shape=LARGE),
    "large: an argument": masked(
        "sparse(w, ids[:, 0])", "def sparse(p, rows):\n    p.grad[rows] = 0", shape=LARGE),
    "large: in turns": masked("w.grad[keep if step % 2 else ~keep] = 0", shape=LARGE),
    "large: a mask that grows": masked("mask[step * 10] = 0\nw.grad *= mask", shape=LARGE),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "masked-decayed"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CHANGED)
def test_masked_elements_that_decay_changes_are_found_where_the_optimizer_is_made(name, engine, checks):
    (one,) = found(CHANGED[name], engine, checks)
    assert one.level == "warning"
    assert CHANGED[name].splitlines()[one.finding.at.line - 1].endswith("#!")
    (part,) = one.finding.parts
    grads = CHANGED[name].splitlines()[part.at.line - 1]
    assert ".grad" in grads
    steps = 5 if "first" in name else 6
    assert f"program.py:{part.at.line} before {steps} of 6 steps" in part.text
    assert ("shrinks them by about" in part.text) == (name != "Adam")
    assert (one.finding.edit is None) == (name == "more parameters")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LEFT)
def test_masked_elements_that_stay_or_that_change_by_turns_are_not_reported(name, engine, checks):
    assert [str(one) for one in found(LEFT[name], engine, checks)] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_decay_that_is_too_small_to_matter_is_a_note(engine, checks):
    (one,) = found(masked("w.grad[keep] = 0", optimizer=ADAMW.replace("lr=0.05", "lr=0.001")), engine, checks)
    assert one.level == "note"
