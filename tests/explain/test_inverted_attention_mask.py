"""Attention masks the wrong way round, each with its line and an edit that mends it, and masks that nearly are."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
HEAD = """
import math
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
"""
CAUSAL = """
T = LENGTH
emb, qkv, out = nn.Embedding(9, 8), nn.Linear(8, 24), nn.Linear(8, 9)
opt = torch.optim.SGD([*emb.parameters(), *qkv.parameters(), *out.parameters()], lr=0.1)
SETUP
for i in range(2):
    seq = (torch.arange(T + 1) + torch.arange(3)[:, None]) % 9
    q, k, v = qkv(emb(seq[:, :-1])).chunk(3, -1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(8)
    ATTEND
    loss = F.cross_entropy(out(h).flatten(0, 1), seq[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ATTENTION = "h = scores.softmax(-1) @ v"


def causal(attend, setup="", length=6):
    rows = f"{attend}\n{ATTENTION}" if "h = " not in attend else attend
    text = CAUSAL.replace("ATTEND", rows.replace("\n", "\n    "))
    return text.replace("SETUP", setup).replace("LENGTH", str(length))


PADDED = """
lengths = torch.tensor([3, 5, 7, 4])
valid = torch.arange(7)[None] < lengths[:, None]
ids = torch.randint(1, 9, (4, 7)) * valid
emb, layer, out = nn.Embedding(9, 8, padding_idx=0), LAYER, nn.Linear(8, 2)
opt = torch.optim.SGD([*emb.parameters(), *layer.parameters(), *out.parameters()], lr=0.1)
for i in range(3):
    h = emb(ids)
    ATTEND
    loss = F.cross_entropy(out(h.mean(1)), torch.tensor([0, 1, 1, 0]))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def padded(attend, layer="nn.MultiheadAttention(8, 2, batch_first=True)"):
    return PADDED.replace("LAYER", layer).replace("ATTEND", attend.replace("\n", "\n    "))


BY_HAND = (
    "scores = h @ layer(h).transpose(1, 2)\nscores = scores.masked_fill(FILL, -1e9)  #!\nh = scores.softmax(-1) @ h"
)
SDPA = "h = F.scaled_dot_product_attention(q, k, v, attn_mask=MASK)  #!"

INVERTED = {
    "a triangle that is filled with -inf": (
        causal('scores = scores.masked_fill(tri == 1, float("-inf"))  #!', "tri = torch.tril(torch.ones(T, T))"),
        ["shows only what comes later", "position 5 none, and its softmax is nan", "tri != 1"],
    ),
    "a triangle that is too large to be kept": (
        causal("scores = scores.masked_fill(tri[:T, :T] != 0, -1e9)  #!", "tri = torch.tril(torch.ones(70, 70))", 50),
        ["shows only what comes later", "position 49 none", "tri[:T, :T] == 0"],
    ),
    "the upper triangle as what is kept": (
        causal("scores = scores.masked_fill(keep == 0, -1e9)  #!", "keep = torch.triu(torch.ones(T, T))"),
        ["position 0 sees all positions", "sees only itself", "tril where the mask is made with triu"],
    ),
    "a mask of what is blocked where true takes part": (
        causal(SDPA.replace("MASK", "blocked"), "blocked = torch.ones(T, T).triu(1).bool()"),
        ["position 5 none", "here True takes part", "attn_mask=~blocked"],
    ),
    "positions that are compared": (
        causal("scores = torch.where(at[:, None] < at[None], scores, torch.tensor(-1e9))  #!", "at = torch.arange(T)"),
        ["shows only what comes later", "here True takes part"],
    ),
    "scores or a number where positions are compared": (
        causal("scores = torch.where(at[:, None] < at[None], scores, -1e9)  #!", "at = torch.arange(T)"),
        ["shows only what comes later", "here True takes part"],
    ),
    "a number or scores where positions are compared": (
        causal("scores = torch.where(at[:, None] >= at[None], -math.inf, scores)  #!", "at = torch.arange(T)"),
        ["shows only what comes later", "here True is hidden"],
    ),
    "the upper triangle with a diagonal": (
        causal("scores = scores.masked_fill(past == 1, -1e9)  #!", "past = torch.tril(torch.ones(T, T), -1)"),
        ["sees only itself", "triu with diagonal=1 where the mask is made with tril and diagonal=-1"],
    ),
    "compared positions that keep the diagonal": (
        causal("scores = scores.masked_fill(at[:, None] > at[None], -1e9)  #!", "at = torch.arange(T)"),
        ["sees only itself", "the other triangle, as .transpose(-2, -1) of the mask has it"],
    ),
    "keys and queries with the triangle of the other": (
        causal("scores = (k @ q.transpose(1, 2)).masked_fill(tri == 0, -1e9)  #!\nh = scores.softmax(-2).mT @ v",
               "tri = torch.tril(torch.ones(T, T))"),
        ["sees only itself", "triu where the mask is made with tril"],
    ),
    "a fill before a pooling": (
        padded("weights = layer(h)[..., 0].masked_fill(valid, -1e9).softmax(1)  #!\nh = weights[..., None] * h * 7",
               "nn.Linear(8, 1)"),
        ["hides the real elements", "here True is hidden"],
    ),
    "a padding mask of true tokens in a module": (
        padded("h, _ = layer(h, h, h, key_padding_mask=valid)  #!"),
        ["hides the real elements", "9 elements of padding", "19 are hidden", "key_padding_mask=~valid"],
    ),
    "a padding mask of true tokens in a transformer": (
        padded("h = layer(h, src_key_padding_mask=ids != 0)  #!",
               "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)"),
        ["hides the real elements", "19 are hidden", "src_key_padding_mask=ids == 0"],
    ),
    "a fill of the real tokens": (
        padded(BY_HAND.replace("FILL", "valid[:, None]"), "nn.Linear(8, 8)"),
        ["hides the real elements", "here True is hidden", "~valid[:, None]"],
    ),
    "a mask of padding where true takes part": (
        padded("pad = ids == 0\nh = F.scaled_dot_product_attention(layer(h), h, h, attn_mask=pad[:, None])  #!",
               "nn.Linear(8, 8)"),
        ["hides the real elements", "here True takes part", "~pad[:, None]"],
    ),
}  # fmt: skip
HEALTHY = {
    "a causal mask": causal("scores = scores.masked_fill(tri == 0, -1e9)", "tri = torch.tril(torch.ones(T, T))"),
    "a causal mask that is too large to be kept": causal(
        "scores = scores.masked_fill(tri[:T, :T] == 0, -1e9)", "tri = torch.tril(torch.ones(70, 70))", 50),
    "what takes part": causal(SDPA.replace("MASK", "allowed"), "allowed = torch.ones(T, T).tril().bool()"),
    "positions that are compared": causal(
        "scores = torch.where(at[:, None] >= at[None], scores, torch.tensor(-1e9))", "at = torch.arange(T)"),
    "both directions": causal(
        "past = scores.masked_fill(tri == 0, -1e9).softmax(-1) @ v\n"
        "future = scores.masked_fill(tri.T == 0, -1e9).softmax(-1) @ v\nh = past + future",
        "tri = torch.tril(torch.ones(T, T))"),
    "a window": causal("scores = scores.masked_fill((at[:, None] - at[None]).abs() > 1, -1e9)", "at = torch.arange(T)"),
    "the others only": causal("scores = scores.masked_fill(torch.eye(T).bool(), -1e9)"),
    "keys and queries": causal(
        "scores = (k @ q.transpose(1, 2)).masked_fill(tri == 0, -1e9)\nh = scores.softmax(-2).transpose(1, 2) @ v",
        "tri = torch.triu(torch.ones(T, T))"),
    "keys and queries that are transposed": causal(
        "scores = (k @ q.transpose(1, 2)).masked_fill(tri == 0, -1e9).transpose(1, 2)\nh = scores.softmax(-1) @ v",
        "tri = torch.triu(torch.ones(T, T))"),
    "spans that end after they start": """
enc, start, end = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
opt = torch.optim.Adam([*enc.parameters(), *start.parameters(), *end.parameters()], 1e-2)
valid = torch.triu(torch.ones(6, 6, dtype=torch.bool))
for i in range(3):
    h = torch.tanh(enc(torch.randn(2, 6, 8)))
    spans = (start(h) @ end(h).transpose(1, 2)).masked_fill(~valid, float("-inf"))
    likely = spans.flatten(1).softmax(-1)
    loss = -likely[:, [3, 8]].log().mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "a policy of empty fields": """
emb, net = nn.Embedding(3, 8), nn.Sequential(nn.Flatten(), nn.Linear(72, 32), nn.ReLU(), nn.Linear(32, 9))
value = nn.Linear(9, 1)
opt = torch.optim.Adam([*emb.parameters(), *net.parameters(), *value.parameters()], 1e-2)
for i in range(3):
    board = torch.randint(0, 3, (5, 9)); board[:, 0] = 0
    p = net(emb(board)).masked_fill(board != 0, float("-inf")).softmax(-1)
    loss = -p[:, 0].log().mean() + value(p).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "attention to empty fields": """
emb, query, out = nn.Embedding(3, 8), nn.Linear(8, 8), nn.Linear(8, 9)
opt = torch.optim.Adam([*emb.parameters(), *query.parameters(), *out.parameters()], 1e-2)
for i in range(3):
    board = torch.randint(0, 3, (5, 9)); board[:, 0] = 0
    h = emb(board)
    w = (query(h) @ h.transpose(1, 2)).masked_fill((board != 0)[:, None], float("-inf")).softmax(-1)
    loss = F.cross_entropy(out((w @ h).mean(1)), torch.zeros(5, dtype=torch.long))
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "padding in a module": padded("h, _ = layer(h, h, h, key_padding_mask=~valid)"),
    "padding in a transformer": padded(
        "h = layer(h, src_key_padding_mask=ids == 0)",
        "nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)"),
    "padding by hand": padded(BY_HAND.replace("FILL", "~valid[:, None]").replace("  #!", ""), "nn.Linear(8, 8)"),
    "padding on the left": padded(
        "left = ids.flip(1)\nh = emb(left)\nh, _ = layer(h, h, h, key_padding_mask=left == 0)"),
    "what takes part of padded tokens": padded(
        "h = F.scaled_dot_product_attention(layer(h), h, h, attn_mask=valid[:, None])", "nn.Linear(8, 8)"),
}  # fmt: skip


def inverted_in(text, engine, checks):
    return [one for one in checks.of_text(text, engine).found if one.finding.kind == "inverted-mask"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_of_which_a_finite_number_hides_all_has_no_nan(engine, checks):
    text = HEAD + causal("scores = scores.masked_fill(tri == 1, -1e4)", "tri = torch.tril(torch.ones(T, T))")
    (finding,) = (one.finding for one in checks.of_text(text, engine).found if one.finding.kind == "inverted-mask")
    (part,) = finding.parts
    assert part.text.endswith("position 5 none")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", INVERTED)
def test_a_mask_the_wrong_way_round_is_found_and_mended(name, engine, checks):
    program, words = INVERTED[name]
    text = HEAD + program
    (one,) = inverted_in(text, engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    said += one.finding.edit.new if one.finding.edit is not None else ""
    assert one.level == "warning"
    assert [word for word in words if word not in said] == []
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    if one.finding.edit is not None:
        found = checks.of_text(one.finding.edit.applied(text), engine).found
        assert [str(other) for other in found if other.level != "note"] == []
    kinds = {other.finding.kind for other in checks.of_text(text, engine).found}
    assert kinds.isdisjoint({"vanishing", "nan-born", "nan-born-backward"})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mask_that_hides_whole_rows_is_the_only_reason_of_every_nan(engine, checks):
    text = (
        HEAD
        + """
torch.manual_seed(3)
emb, layer, out = nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 2)
opt = torch.optim.Adam([*emb.parameters(), *layer.parameters(), *out.parameters()], 1e-2)
lengths = torch.randint(5, 21, (24,))
lengths[0] = 20
for i in range(2):
    ids = torch.randint(1, 9, (24, 20)).masked_fill(torch.arange(20) >= lengths[:, None], 0)
    real = ids != 0
    h = emb(ids)
    scores = layer(h) @ h.transpose(1, 2)
    weights = scores.masked_fill(real[:, None], float("-inf")).softmax(-1)  #!
    loss = F.cross_entropy(out((weights @ h).mean(1)), torch.zeros(24, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    )
    found = checks.of_text(text, engine).found
    (one,) = (one for one in found if one.level != "note")
    assert (one.finding.kind, one.level) == ("inverted-mask", "warning")
    assert {other.finding.kind for other in found}.isdisjoint({"nan-born", "nan-born-backward"})
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_earlier_nan_of_another_line_is_reported_next_to_an_inverted_mask(engine, checks):
    text = HEAD + causal("scores = scores.masked_fill(tri == 1, float('-inf'))", "tri = torch.tril(torch.ones(T, T))")
    row = next(row for row in text.splitlines() if "scores = scores" in row)
    text = text.replace(row, f"{row.partition('scores')[0]}size = (v * 0).sum().log() - (v * 0).sum().log()\n{row}")
    found = checks.of_text(text.replace("loss = ", "loss = 0 * size + "), engine).found
    born = [one.finding for one in found if one.finding.kind == "nan-born"]
    assert "inverted-mask" in {one.finding.kind for one in found}
    assert len(born) == 1
    assert "log" in born[0].text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_mask_that_hides_what_it_should_is_not_reported(name, engine, checks):
    found = checks.of_text(HEAD + HEALTHY[name], engine).found
    assert [str(one) for one in found if one.level != "note"] == []


DEEP = """
deep = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Sigmoid()) for _ in range(7)], nn.Linear(16, 1))
slow = torch.optim.SGD(deep.parameters(), lr=0.1)
for i in range(2):
    missed = F.mse_loss(deep(torch.randn(32, 16)), torch.randn(32, 1))
    slow.zero_grad()
    missed.backward()
    slow.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mask_explains_no_vanishing_gradient_of_another_model(engine, checks):
    text = HEAD + INVERTED["the upper triangle as what is kept"][0]
    kinds = {one.finding.kind for one in checks.of_text(text, engine).found}
    assert "inverted-mask" in kinds
    assert "vanishing" not in kinds
    assert {"inverted-mask", "vanishing"} <= {one.finding.kind for one in checks.of_text(text + DEEP, engine).found}


AFTER = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
class Attention(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.drop = nn.Dropout(0.1)
    def forward(self, x, mask=None):
        attn = self.q(x) @ self.k(x).transpose(-2, -1) / 8 ** 0.5
        WEIGHTS
        return attn @ self.v(x)
net = Attention()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(3):
    x = torch.randn(4, 6, 8)
    keep = torch.arange(6) < torch.tensor([[6], [4], [3], [5]])
    out = net(x, keep[:, None])
    loss = ((out - 1) * keep[..., None]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def after(weights):
    return AFTER.replace("WEIGHTS", weights.replace("\n", "\n        "))


SOFTMAX = "attn = attn.softmax(dim=-1)\n"
MASKED_LATE = {
    "in a condition": (f"{SOFTMAX}if mask is not None:\n    attn = attn.masked_fill(~mask, float('-inf'))  #!", True),
    "a large number": ("attn = F.softmax(attn, -1)\nattn = attn.masked_fill(mask == 0, -1e9)  #!", True),
    "after a dropout": (f"{SOFTMAX}attn = self.drop(attn)\nattn = attn.masked_fill(~mask, -torch.inf)  #!", False),
    "in place": (f"{SOFTMAX}attn.masked_fill_(~mask, -1e4)  #!", True),
    "at an index": (f"{SOFTMAX}attn = attn.clone()\nattn[~mask.expand_as(attn)] = float('-inf')  #!", False),
    "added": (f"{SOFTMAX}attn = attn + (1 - mask.float()) * -1e9  #!", True),
    "in one expression": ("attn = F.softmax(attn, dim=-1).masked_fill(~mask, float('-inf'))  #!", True),
    "with where": (f"{SOFTMAX}attn = torch.where(mask, attn, torch.tensor(float('-inf')))  #!", True),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MASKED_LATE)
def test_a_mask_for_scores_in_the_weights_of_a_softmax_is_found(name, engine, checks):
    weights, has_edit = MASKED_LATE[name]
    text = after(weights)
    found = [one for one in checks.of_text(text, engine).found if one.level != "note"]
    (one,) = [one for one in found if one.finding.kind == "masked-after-softmax"]
    assert text.splitlines()[one.finding.at.line - 1].endswith("#!")
    assert "after the softmax" in one.finding.text
    assert "nan-born" not in {other.finding.kind for other in found}
    assert (one.finding.edit is not None) is has_edit
    if has_edit:
        mended = one.finding.edit.applied(text)
        assert [str(other) for other in checks.of_text(mended, engine).found if other.level != "note"] == []


NOT_LATE = {
    "before the softmax": "attn = attn.masked_fill(~mask, float('-inf')).softmax(-1)",
    "for a choice": f"{SOFTMAX}best = attn.masked_fill(~mask, float('-inf')).topk(2).indices\n"
    "attn = torch.zeros_like(attn).scatter(-1, best, attn.gather(-1, best))\nattn = attn / attn.sum(-1, keepdim=True)",
    "divided by their sum": f"{SOFTMAX}attn = attn * mask\nattn = attn / attn.sum(-1, keepdim=True)",
    "of logarithms": "attn = attn.masked_fill(~mask, -1e9).log_softmax(-1).masked_fill(~mask, float('-inf')).exp()",
    "of a second softmax": f"{SOFTMAX}attn = (attn * 4).masked_fill(~mask, float('-inf')).softmax(-1)",
    "zeros again": "attn = attn.masked_fill(~mask, float('-inf')).softmax(-1).masked_fill(~mask, 0.0)",
    "whole rows": f"{SOFTMAX}attn = attn * (torch.arange(6) < 5)[:, None]",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NOT_LATE)
def test_a_mask_of_scores_or_of_whole_rows_is_right(name, engine, checks):
    kinds = {one.finding.kind for one in checks.of_text(after(NOT_LATE[name]), engine).found}
    assert kinds.isdisjoint({"masked-after-softmax", "nan-born"})
