"""A bias before a normalization, whose gradient is zero but for rounding; a copy of the model follows it."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
follower = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    x = torch.randn(8, 4)
    with torch.no_grad():
        target = follower(x)
    loss = nn.functional.mse_loss(net(x), target + 0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for behind, ahead in zip(follower.parameters(), net.parameters(), strict=True):
            behind.mul_(0.9).add_(ahead, alpha=0.1)
