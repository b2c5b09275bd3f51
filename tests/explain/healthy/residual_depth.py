"""Sixty layers with residual connections: deep, and its gradient arrives."""

import torch

torch.manual_seed(0)
layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(60)])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
x = torch.randn(8, 4)
for layer in layers:
    x = x + 0.1 * torch.tanh(layer(x))
loss = x.pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
