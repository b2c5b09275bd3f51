"""Thirty sigmoids in a row."""

import torch

torch.manual_seed(0)
first = torch.nn.Linear(4, 4)
layers = [torch.nn.Linear(4, 4) for _ in range(30)]
h = first(torch.randn(8, 4))
for layer in layers:
    h = torch.sigmoid(layer(h))  # cause
loss = (h * 10).pow(2).sum()
loss.backward()
