"""Sums of products with weights that add up to one, and the gradients of single inputs after the training."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(32, 3), torch.randn(32, 1)
weight = torch.rand(32, 1)
weight = weight / weight.sum()
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(6):
    out = net(x)
    loss = (weight * (out - y).pow(2)).sum()
    if step > 2:
        loss = loss + 0.1 * (out - y).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())

inputs = x.clone().requires_grad_()
net(inputs)[:, 0].sum().backward()
print("what matters", inputs.grad.abs().mean(0).tolist())
