"""Forces as the gradient of an energy: a constant in the energy has no derivative, so the last bias gets none."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(4):
    x = torch.randn(16, 2, requires_grad=True)
    (force,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    loss = (force + 2 * x.detach()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
