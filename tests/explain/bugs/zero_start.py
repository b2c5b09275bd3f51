"""A model whose second layer starts with zeros."""

import torch

w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
out = torch.zeros(2, 1, requires_grad=True)  # cause
x = torch.tensor([[1.0, -1.0]])
loss = (torch.tanh(x @ w) @ out - 1.0).pow(2).sum()
loss.backward()
