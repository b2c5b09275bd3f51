"""A recurrent product by a matrix that is too large."""

import torch

torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(4, 4) * 5)
start = torch.nn.Parameter(torch.ones(1, 4))
h = start
for _ in range(25):
    h = h @ w  # cause
loss = h.mean() * 1e-20
loss.backward()
