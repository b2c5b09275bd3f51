"""A block of a transformer, from its parts, learning to copy a sequence backwards."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        mask = torch.tril(torch.ones(length, length)).bool()
        weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, words=10, width=16, length=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.set_default_dtype(torch.float64)
model = Model()
with torch.no_grad():
    for number, (name, parameter) in enumerate(model.named_parameters()):
        if "norm" not in name:
            parameter.copy_((torch.sin(torch.arange(parameter.numel()) * 1.3 + number) * 0.2).view_as(parameter))
tokens = (torch.arange(32).view(4, 8) * 7) % 10
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
print(sum(parameter.numel() for parameter in model.parameters()), model.blocks[0].attention)
for step in range(12):
    logits = model(tokens)
    loss = F.cross_entropy(logits.view(-1, 10), tokens.flip(1).reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 3 == 0:
        print(step, f"{loss.item():.5f}", f"{norm.item():.4f}")
print(logits.argmax(-1)[0], logits.shape, logits.dtype)
torch.set_default_dtype(torch.float32)
