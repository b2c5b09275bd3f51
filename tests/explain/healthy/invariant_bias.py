"""A loss that no shift changes: the gradient of the last bias is a sum that cancels."""

import torch
from torch import nn

torch.manual_seed(75)
net = nn.Sequential(nn.Linear(10, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
for _ in range(4):
    x = torch.randn(64, 10)
    views = [net(x + 0.2 * torch.randn_like(x)) for _ in range(2)]
    spread = sum(torch.relu(1 - (z.var(0) + 1e-4).sqrt()).mean() for z in views) / 2
    centred = [z - z.mean(0) for z in views]
    crossed = sum((z.t() @ z / 63).pow(2).sum() / 16 for z in centred)
    loss = 25 * (views[0] - views[1]).pow(2).mean() + 25 * spread + crossed
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
