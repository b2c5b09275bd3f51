"""A net that is to obey u' = -u: its points are made once, and require a gradient for the derivative alone."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
t = torch.tensor([[0.0], [0.5], [1.0]], requires_grad=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(4):
    optimizer.zero_grad()
    u = net(t)
    (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    ((slope + u) ** 2).mean().backward()
    optimizer.step()
