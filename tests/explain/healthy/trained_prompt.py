"""A trained model is frozen, in evaluation mode, and a prompt is trained that it is given."""

import torch
from torch import nn

F = nn.functional
torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 8)
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 8), nn.LayerNorm(8))
        self.head = nn.Linear(8, 10)

    def forward(self, words, prompt=None):
        h = self.emb(words)
        if prompt is not None:
            h = torch.cat([prompt.expand(len(words), -1, -1), h], 1)
        return self.head(self.body(h).mean(1))


net = Reader()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
words, label = torch.randint(0, 10, (16, 5)), torch.randint(0, 10, (16,))
for _ in range(4):
    loss = F.cross_entropy(net(words), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("trained", loss.item())

net.eval()
for p in net.parameters():
    p.requires_grad_(False)
prompt = nn.Parameter(torch.randn(2, 8))
opt = torch.optim.Adam([prompt], lr=0.05)
for _ in range(8):
    loss = F.cross_entropy(net(words, prompt), (label + 1) % 10)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("prompt", loss.item())
