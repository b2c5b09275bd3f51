"""A loss that is made a number before backward is called on it."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
for _ in range(2):
    loss = (w * w).sum()
    loss = loss.item()  # cause
    loss.backward()
