"""A layer frozen as a module, a bias by its flag: what trains a part of a model."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
net[0].requires_grad_(False)
net[2].bias.requires_grad = False
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    loss = (net(torch.randn(4, 2)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
