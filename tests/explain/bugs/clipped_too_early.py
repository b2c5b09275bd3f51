"""Gradients that are clipped before backward has made them."""

import torch

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    loss = (net(torch.randn(6, 2)) - 1).pow(2).mean()
    optimizer.zero_grad()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)  # cause
    loss.backward()
    optimizer.step()
