"""Rounding whose gradient passes straight through."""

import torch


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


torch.manual_seed(0)
layer = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    h = layer(torch.randn(4, 3))
    loss = (Round.apply(h) + (h + (h.round() - h).detach()) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
