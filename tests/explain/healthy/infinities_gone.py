"""Infinities that are meant, and gone before the loss: inverse degrees, a norm without a limit."""

import torch
from torch import nn

torch.manual_seed(0)
adjacency = torch.tensor([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
inverse = adjacency.sum(1) ** -0.5
inverse[inverse == float("inf")] = 0.0
mixing = inverse.unsqueeze(1) * adjacency * inverse.unsqueeze(0) + torch.eye(4)
x, y = torch.randn(4, 3), torch.randn(4, 1)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(5):
    loss = (net(mixing @ x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), float("inf"))
    opt.step()
    print(step, loss.item(), norm.item())
