"""Models of tokens whose attention sees the labels, and models whose attention or task hides them."""

import pytest

from gviz.explain.finding import lines

ENGINES = ["builtin", pytest.param("torch", marks=pytest.mark.torch)]
PROGRAM = """
import torch
from torch import nn
F = nn.functional
torch.manual_seed(0)
V, S = 20, 10
causal = torch.triu(torch.ones(S, S, dtype=torch.bool), 1)
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
mha = nn.MultiheadAttention(16, 2, batch_first=True)
emb, source_emb, head = nn.Embedding(V, 16), nn.Embedding(V, 16), nn.Linear(16, V)
qkv, rnn = nn.Linear(16, 48), nn.GRU(16, 16, batch_first=True)
modules = nn.ModuleList([encoder, mha, emb, source_emb, head, qkv, rnn])
opt = torch.optim.SGD(modules.parameters(), lr=0.1)
text = torch.randint(0, V, (200,))

def by_hand(h, mask=None):
    q, k, v = qkv(h).chunk(3, dim=-1)
    scores = q @ k.transpose(-2, -1) / 4.0
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return scores.softmax(dim=-1) @ v

for i in range(3):
    starts = torch.randint(0, 180, (6,)).tolist()
    tokens = torch.stack([text[s : s + S + 1] for s in starts])
    x, y = tokens[:, :-1], tokens[:, 1:]
    h = emb(x)
    STEP
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOSS = "\nloss = F.cross_entropy(head(h).reshape(-1, V), y.reshape(-1))"


def program(step):
    return PROGRAM.replace("STEP", (step if "loss =" in step else step + LOSS).replace("\n", "\n    "))


OPEN = {
    "an encoder": program("h = encoder(h)"),
    "attention with weights": program("h, _ = mha(h, h, h)"),
    "attention without weights": program("h, _ = mha(h, h, h, need_weights=False)"),
    "attention by hand": program("h = h + by_hand(h)"),
    "a function": program("h = h + F.scaled_dot_product_attention(h, h, h)"),
    "one layer of two": program("h = h + by_hand(h, causal)\nh = h + by_hand(h)"),
    "a sequence without a batch": program(
        "h = emb(tokens[0, :-1])\nh = h + by_hand(h)\nloss = F.cross_entropy(head(h), tokens[0, 1:])"),
    "attention over a bias of zeros": program(
        "h = h + by_hand(h, torch.zeros(S, S, dtype=torch.bool))"),
    "places before samples": program(
        "h = emb(x.t().contiguous())\nh = h + by_hand(h.transpose(0, 1)).transpose(0, 1)\n"
        "loss = F.cross_entropy(head(h).reshape(-1, V), y.t().reshape(-1))"),
    "a loss of classes in the middle": program(
        "h = h + by_hand(h)\nloss = F.cross_entropy(head(h).transpose(1, 2), y)"),
    "shifted by the loss": program(
        "h = encoder(emb(tokens[:, :S]))\n"
        "loss = F.cross_entropy(head(h)[:, :-1].reshape(-1, V), tokens[:, 1:S].reshape(-1))"),
}  # fmt: skip
HIDDEN = {
    "a causal mask": program("h = encoder(h, mask=causal)"),
    "a flag": program("h = h + F.scaled_dot_product_attention(h, h, h, is_causal=True)"),
    "a mask by hand": program("h = h + by_hand(h, causal)"),
    "a mask of attention": program("h, _ = mha(h, h, h, attn_mask=causal)"),
    "a recurrent net": program("h, _ = rnn(h)"),
    "the same places": program("y = x\nh = encoder(h)"),
    "another text": program("h = encoder(h)\ny = torch.randint(0, V, (6, S))"),
    "a bias by hand": program(
        "q, k, v = qkv(h).chunk(3, dim=-1)\n"
        "scores = q @ k.transpose(-2, -1) / 4.0 + causal.float() * -1e9\nh = h + scores.softmax(dim=-1) @ v"),
    "attention over channels": program("h = h + (h.transpose(1, 2) @ h / 9.0).softmax(dim=-1).sum(1, keepdim=True)"),
    "attention over samples": program(
        "h = h + (h.transpose(0, 1) @ h.permute(1, 2, 0) / 9.0).softmax(-1).sum((1, 2))[None, :, None]"),
    "a mask of the last pass": program("h = h + by_hand(h, causal if i else None)"),
    "a source": program(
        "memory = encoder(source_emb(x.flip(1)))\nh, _ = rnn(h)\n"
        "h = h + F.scaled_dot_product_attention(h, memory, memory)"),
    "an autoencoder": program(
        "memory = encoder(source_emb(tokens[:, 1:]))\nh, _ = rnn(h)\n"
        "h = h + F.scaled_dot_product_attention(h, memory, memory)"),
    "one label of a sequence": program(
        "h = encoder(h)\nloss = F.cross_entropy(head(h.mean(1)), tokens[:, -1])"),
}  # fmt: skip


def found(text, engine, checks):
    outcome = checks.of_text(text, engine)
    assert outcome.errors == []
    return [one for one in outcome.found if one.finding.kind == "no-causal-mask"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPEN)
def test_attention_that_sees_the_labels_is_found(name, engine, checks):
    (one,) = found(OPEN[name], engine, checks)
    said = "\n".join(row for _, row, _ in lines(one.finding))
    assert one.level == "warning"
    assert "each label is the token one place later in" in said
    assert "is over all positions" in said


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", HIDDEN)
def test_attention_that_sees_no_label_is_not_reported(name, engine, checks):
    assert found(HIDDEN[name], engine, checks) == []
