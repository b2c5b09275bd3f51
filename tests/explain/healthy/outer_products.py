"""Columns and rows that broadcast on purpose: pairs of scores, a cost for each pair, a signal for each sample."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x, times = torch.randn(12, 4), torch.linspace(0, 1, 12)
signals = torch.sin(x[:, :1] * times)
for _ in range(3):
    scores = net(x)
    pairs = scores - scores.squeeze(1)  # one tensor as a column and as a row
    ranked = nn.functional.softplus(-pairs).mean()
    cost = (scores.squeeze(1)[:, None] - times).square().sum(1).mean()  # the column is made on the line
    error = ((torch.sin(scores * times) - signals) ** 2).mean()  # it meets data of its shape
    loss = ranked + cost + error
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
