"""A running average of what is trained, which is updated with its graph."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
average = torch.tensor([1.0, 2.0])

for _ in range(2):
    power = w * w
    (power - average).sum().backward()
    w.grad = None
    average.mul_(0.9).add_(power, alpha=0.1)  # cause
