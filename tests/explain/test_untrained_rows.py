"""Rows of a fused weight that no loss reaches, and those whose gradient is 0 or that others train."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
d = 16
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.conv = nn.Conv1d(d, 2 * d, 1)
        self.w = nn.Parameter(torch.randn(d, 3 * d) / 4)
    def attend(self, q, k, v):
        return self.out((q @ k.transpose(-2, -1) / 4).softmax(-1) @ v)
    def forward(self, x, step):
        FORWARD
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4, 5, d)
    loss = (net(x, step) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CHUNK = "q, k, v = self.qkv(x).chunk(3, dim=-1)\n"
HEADS = "qkv = self.qkv(x).reshape(4, 5, 3, 2, 8).permute(2, 0, 3, 1, 4)\n"
BY_HEADS = "return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(4, 5, d))"
ATTEND = "return self.attend(q, k, v)"
LOST = {
    "a detached key": (CHUNK + "k = k.detach()  #!\n" + ATTEND, "rows 16 to 31 of", "k is cut"),
    "a detached value": (CHUNK + "return self.attend(q, k, v.detach())  #!", "rows 32 to 47 of", "v is cut"),
    "a key under no_grad": (
        CHUNK + "with torch.no_grad():\n    k = k * 1.0  #!\n" + ATTEND, "rows 16 to 31 of", "k is cut"),
    "a key that is never used": (
        CHUNK.replace("\n", "  #!\n") + "return self.attend(q, q, v)", "rows 16 to 31 of", "nothing uses k"),
    "a value that the input replaces": (
        CHUNK.replace("\n", "  #!\n") + "return self.attend(q, k, x)", "rows 32 to 47 of", "nothing uses v"),
    "parts by slices": (
        "h = self.qkv(x)\nq, k, v = h[..., :d], h[..., d:2 * d], h[..., 2 * d:]\n"
        "return self.attend(q, k, v.detach())  #!", "rows 32 to 47 of", "v is cut"),
    "parts of heads": (
        HEADS + "q, k, v = qkv[0], qkv[1], qkv[2]\nk = k.detach()  #!\n" + BY_HEADS, "rows 16 to 31 of", "k is cut"),
    "parts of heads by unbind": (
        HEADS + "q, k, v = qkv.unbind(0)\nv = v.detach()  #!\n" + BY_HEADS, "rows 32 to 47 of", "v is cut"),
    "a query of two calls": (
        CHUNK + "q2, k2, v2 = self.qkv(x + 1).chunk(3, dim=-1)\n"
        "return self.attend(q, k.detach(), v) + self.attend(q2, k2.detach(), v2)  #!", "rows 16 to 31 of", "is cut"),
    "channels of a convolution": (
        "a, b = self.conv(x.transpose(1, 2)).chunk(2, dim=1)  #!\nreturn a.transpose(1, 2)",
        "channels 16 to 31 of", "nothing uses b"),
    "columns of a parameter": (
        "q, k, v = (x @ self.w).chunk(3, dim=-1)\nreturn self.attend(q, k.detach(), v)  #!",
        "columns 16 to 31 of", "k is cut"),
}  # fmt: skip
TRAINED = {
    "an attention": CHUNK + ATTEND,
    "an attention by heads": HEADS + "q, k, v = qkv[0], qkv[1], qkv[2]\n" + BY_HEADS,
    "a dead ReLU": "h = torch.relu(self.qkv(x) - 100)\nq, k, v = h.chunk(3, dim=-1)\nreturn self.attend(q, k, v)",
    "a masked weight": "h = F.linear(x, self.qkv.weight * (torch.arange(3 * d) < d).float()[:, None])\n"
    "q, k, v = h.chunk(3, dim=-1)\nreturn self.attend(q, k, v)",
    "a saturated gate": "a, g, b = self.qkv(x).chunk(3, dim=-1)\nreturn self.out(a * torch.sigmoid(g + 1000) + b)",
    "a part of another iteration": CHUNK + "return self.attend(q, k if step == 1 else k.detach(), v)",
    "queries of one call and keys of another": "q, _, _ = self.qkv(x).chunk(3, dim=-1)\n"
    "_, k, v = self.qkv(x + 1).chunk(3, dim=-1)\n" + ATTEND,
    "a part that is left unused on purpose": "q, _, v = self.qkv(x).chunk(3, dim=-1)\nreturn self.attend(q, q, v)",
    "the first of several columns": "return self.out(self.qkv(x)[..., :d])",
    "parts along the batch": "a, b = self.out(torch.cat([x, x + 1])).chunk(2)\nreturn a * b.detach()",
    "a part with a stop and a loss of its own": CHUNK + "return self.attend(q, k.detach(), v) + k.pow(2)",
    "a weight that is used in both directions": "q, k, v = (x @ self.w).chunk(3, dim=-1)\n"
    "return self.attend(q, k.detach(), v) + torch.relu(torch.cat([q, q, v], -1)) @ self.w.t()",
    "a weight whose size is in the loss": CHUNK
    + "return self.attend(q, k.detach(), v) + 0.01 * self.qkv.weight.pow(2).sum()",
    "an index of an embedding": "h = self.qkv(x)\nreturn self.out(h[..., torch.arange(d)])",
}


def program(forward):
    return PROGRAM.replace("FORWARD", forward.replace("\n", "\n        "))


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "untrained-rows"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOST)
def test_rows_whose_part_is_cut_off_or_unused_are_found(name, engine, checks):
    forward, rows, reason = LOST[name]
    text = program(forward)
    (one,) = found(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert rows in one.finding.text
    assert reason in said
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TRAINED)
def test_rows_with_a_path_to_a_loss_are_no_finding(name, engine, checks):
    assert [str(one) for one in found(program(TRAINED[name]), engine, checks)] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_no_slice_takes_are_a_note(engine, checks):
    forward = "h = self.qkv(x)\nq, k, v = h[..., :d], h[..., d:2 * d], h[..., d:2 * d]\n" + ATTEND
    (one,) = found(program(forward), engine, checks)
    assert one.level == "note"
    assert "rows 32 to 47" in one.finding.text
    assert "no slice of the result takes them" in str(one)
