"""Training by hand that makes results of the leaves, and fails on the second step."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
lr = 0.1
for _ in range(3):
    h = w * 3
    loss = h.sum()
    loss.backward()
    w = w - lr * w.grad  # cause
