"""Masks of a loss: those that keep what the labels ignore, and those that leave it out."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
emb, out = nn.Embedding(9, 6, padding_idx=0), nn.Linear(6, 9)
opt = torch.optim.SGD([*emb.parameters(), *out.parameters()], lr=0.1)
DEF
for step in range(3):
    ids = torch.randint(1, 9, (4, 7))
    for row in range(4):
        ids[row, 4 + row % 3:] = 0
    copied = ids.roll(-1, 1)
    labels = copied.clone()
    drawn = torch.rand(4, 7) < 0.4
    labels[:, :2] = -100
    scores = out(emb(ids))
    LOSS
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def program(loss, functions=""):
    return HEAD.replace("LOSS", loss.replace("\n", "\n    ")).replace("DEF", functions)


GATHER = "logps = scores.log_softmax(-1).gather(2, safe.unsqueeze(2)).squeeze(2)\n"
BATCH_LOGPS = """
def batch_logps(scores, labels):
    labels = labels[:, 1:].clone()
    loss_mask = labels == -100
    labels[labels == -100] = 0
    logps = torch.gather(scores[:, :-1].log_softmax(-1), 2, labels.unsqueeze(2)).squeeze(2)
    return (logps * loss_mask).sum(-1)  #!
"""
SFT = """
class MaskedLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.ce = nn.CrossEntropyLoss(reduction="none", ignore_index=-100)

    def forward(self, scores, labels):
        ignored = (labels == -100).float()
        losses = self.ce(scores.transpose(1, 2), labels)
        return (losses * ignored).sum() / ignored.sum()  #!


masked = MaskedLoss()
"""
MISTAKES = {
    "log-probabilities of direct preferences": (
        program("loss = -batch_logps(scores, labels).mean()", BATCH_LOGPS), "warning", "-100", "* ~loss_mask"),
    "a mask that fills the labels": (
        program("mask = labels == -100\nsafe = labels.masked_fill(mask, 0)\n" + GATHER +
                "loss = -(logps * mask).sum(-1).mean()  #!"),
        "warning", "where", "* ~mask"),
    "a loss in a module": (
        program("loss = masked(scores, labels)", SFT), "warning", "-100", "ignored = (labels != -100).float()"),
    "a where of the labels": (
        program("safe = torch.where(labels == -100, torch.zeros_like(labels), labels)\n" + GATHER +
                "loss = -torch.where(labels == -100, logps, torch.zeros_like(logps)).mean()  #!"),
        "warning", "-100", ""),
    "a fill where the labels are real": (
        program("keep = labels != -100\nsafe = labels.clamp(min=0)\n" + GATHER +
                "loss = -logps.masked_fill(keep, 0.0).sum() / 9  #!"),
        "warning", "-100", "masked_fill(~keep, 0.0)"),
    "an index of what is below 0": (
        program("safe = labels.clamp(min=0)\n" + GATHER + "loss = -logps[labels < 0].mean()  #!"),
        "warning", "below 0", ""),
    "the opposite of a right mask": (
        program("keep = labels.ne(-100)\nsafe = labels * keep\n" + GATHER +
                "loss = -(logps * (1 - keep.float())).sum()  #!"),
        "warning", "-100", ""),
    "a mask from lengths that also fills": (
        program("after = torch.arange(7) >= torch.tensor([4, 5, 6, 4])[:, None]\n"
                "safe = ids.roll(-1, 1).masked_fill(after, 0)\n" + GATHER + "loss = -(logps * after).mean()  #!"),
        "warning", "is true", "* ~after"),
    "the padding of an embedding": (
        program("target = ids.roll(-1, 1)\npad = target == 0\n"
                "losses = F.cross_entropy(scores.transpose(1, 2), target, reduction='none')\n"
                "loss = (losses * pad).sum() / pad.sum()  #!"),
        "warning", "is 0", "pad = target != 0"),
    "the padding of another embedding": (
        program("target = F.one_hot(ids.roll(-1, 1), 9).argmax(-1)\npad = (target == 0).float()\n"
                "losses = F.cross_entropy(scores.transpose(1, 2), target, reduction='none')\n"
                "loss = (losses * pad).sum() / pad.sum()  #!"),
        "note", "is 0", "pad = (target != 0).float()"),
    "the padding of a view of the tokens": (
        program("target, seen = ids[:, 1:], scores[:, :-1]\n"
                "losses = F.cross_entropy(seen.transpose(1, 2), target, reduction='none')\n"
                "loss = losses[target == 0].mean()  #!"),
        "warning", "is 0", ""),
    "what a validation ignores": (
        program("with torch.no_grad():\n    F.cross_entropy(scores.flatten(0, 1), copied.flatten(), ignore_index=1)\n"
                "target = copied.clone()\npad = target == 1\n"
                "losses = F.cross_entropy(scores.transpose(1, 2), target, reduction='none')\n"
                "loss = (losses * pad).sum() / pad.sum()  #!"),
        "note", "is 1", "pad = target != 1"),
    "rows of the prompt": (
        program("m = labels == -100\nloss = F.cross_entropy(scores[m], copied[m])  #!"),
        "warning", "-100", "m = labels != -100"),
    "places of the prompt": (
        program("at = (labels.view(-1) == -100).nonzero().squeeze(1)\n"
                "chosen = scores.view(-1, 9).index_select(0, at)  #!\n"
                "loss = -chosen.log_softmax(1).gather(1, copied.view(-1)[at][:, None]).mean()"),
        "warning", "-100", ""),
    "a prompt of other labels": (
        program("at = (labels < 0).nonzero(as_tuple=True)\nloss = F.cross_entropy(scores[at], ids[at])  #!").replace(
            "copied.clone()", "torch.randint(0, 9, (4, 7))"),
        "note", "below 0", ""),
    "a selection by a mask in a function": (
        program("loss = masked_loss(scores, copied, labels)", """
def masked_loss(scores, target, labels):
    ignored = labels.eq(-100)
    picked = torch.masked_select(target, ignored)
    return F.cross_entropy(scores.masked_select(ignored.unsqueeze(-1)).view(-1, 9), picked)  #!
"""),
        "warning", "-100", ""),
    "losses of the prompt": (
        program("losses = F.cross_entropy(scores.transpose(1, 2), copied, reduction='none')\n"
                "prompt = (labels == -100).float()\nloss = (losses * prompt).sum() / prompt.sum()  #!"),
        "warning", "-100", "prompt = (labels != -100).float()"),
}  # fmt: skip
ANSWER = "safe = labels.clamp(min=0)\n" + GATHER
HEALTHY = {
    "a mask of real labels": program("keep = labels != -100\n" + ANSWER + "loss = -(logps * keep).sum() / keep.sum()"),
    "the opposite of a mask that fills": program(
        "mask = labels == -100\nsafe = labels.masked_fill(mask, 0)\n" + GATHER +
        "loss = -(logps * ~mask).sum(-1).mean()"),
    "a fill where labels are ignored": program(
        ANSWER + "loss = -logps.masked_fill(labels == -100, 0.0).sum() / 9"),
    "an index of real labels": program(ANSWER + "loss = -logps[labels >= 0].mean()"),
    "a loss of the prompt with its own labels": program(
        "losses = F.cross_entropy(scores.transpose(1, 2), ids, reduction='none')\n"
        "loss = (losses * (labels != -100)).mean() + 0.1 * (losses * (labels == -100)).mean()"),
    "a loss of one class": program(
        "label = ids[:, 1]\nlosses = F.cross_entropy(scores[:, 0], label, reduction='none')\n"
        "loss = (losses * (label == 3)).mean() + 2 * (losses * (label != 3)).mean()"),
    "a sum of the ignored that is only read": program(
        ANSWER + "read = (logps * (labels == -100)).sum()\nloss = -(logps * (labels != -100)).mean()"),
    "weights of the padding and of the others": program(
        "target = ids.roll(-1, 1)\nlosses = F.cross_entropy(scores.transpose(1, 2), target, reduction='none')\n"
        "loss = 0.1 * (losses * (target == 0)).mean() + (losses * (target != 0)).mean()"),
    "one step of a sequence of actions": program(
        "safe = ids\n" + GATHER + "loss = -(logps * (torch.arange(7) == 3)).sum(-1).mean()"),
    "a sum of the ignored that is only a factor": program(
        ANSWER + "with torch.no_grad():\n    others = (logps * (labels == -100)).sum()\n"
        "loss = -(logps * (labels != -100)).mean() * others"),
    "rows with labels": program("m = labels != -100\nloss = F.cross_entropy(scores[m], ids[m])"),
    "rows of the prompt and of the answer": program(
        "m = labels == -100\n"
        "loss = 0.1 * F.cross_entropy(scores[m], ids[m]) + F.cross_entropy(scores[~m], ids[~m])"),
    "rows that a second forward pass is for": program(
        "un = labels == -100\nloss = F.cross_entropy(scores.transpose(1, 2), labels)\n"
        "again = out(emb(ids))\nloss = loss + F.cross_entropy(again[un], again.argmax(-1)[un])"),
    "a language model of masked tokens that are marked": program(
        "marks = ids.clone()\nmarks[drawn] = -100\nm = marks == -100\nloss = F.cross_entropy(scores[m], ids[m])"
    ).replace("emb(ids)", "emb(ids.masked_fill(drawn, 1))"),
    "tokens that are masked by a number": program("m = seen == 1\nloss = F.cross_entropy(scores[m], ids[m])").replace(
        "scores = out(emb(ids))", "seen = ids.masked_fill(drawn, 1)\n    scores = out(emb(seen))"),
    "kept tokens of a masked language model": program(
        "marks = torch.where(drawn, ids, -100)\nun = marks.eq(-100)\n"
        "loss = F.cross_entropy(scores.transpose(1, 2), marks) + 0.2 * F.cross_entropy(scores[un], ids[un])"
    ).replace("emb(ids)", "emb(ids.masked_fill(drawn, 1))"),
    "rows of the class 0": program(
        "label = ids[:, 1] % 2\nm = label == 0\nfirst = F.cross_entropy(scores[:, 0][m], label[m])\n"
        "loss = first + F.cross_entropy(scores[:, 0], label)"),
    "the end of a text and the padding": program(
        "target = ids.roll(-1, 1)\nlosses = F.cross_entropy(scores.transpose(1, 2), target, reduction='none')\n"
        "ends = (losses * (target == 0)).mean()\nloss = losses.mean() + ends"),
    "labels without a mask": program("loss = F.cross_entropy(scores.transpose(1, 2), labels)"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mask_that_keeps_what_is_ignored_is_found(name, engine, checks):
    text, level, words, mended = MISTAKES[name]
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    (one,) = (one for one in outcome.found if one.finding.kind == "inverted-mask")
    assert one.level == level
    assert words in "\n".join(row for _, row, _ in lines(one.finding))
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    edit = one.finding.edit
    assert mended in (edit.new if edit is not None else "")
    assert (edit is not None) is bool(mended)
    if edit is not None:
        again = checks.of_text(edit.applied(text), engine)
        assert (again.errors, [each for each in again.found if each.finding.kind == "inverted-mask"]) == ([], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_mask_that_keeps_what_has_labels_is_not_found(name, engine, checks):
    outcome = checks.of_text(HEALTHY[name], engine)
    assert outcome.errors == []
    assert [str(one) for one in outcome.found if one.finding.kind == "inverted-mask"] == []
