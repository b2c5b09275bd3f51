"""A leaf changed in place by another of its names, beside leaves that stay as they are."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
other = torch.tensor([1.0, 2.0], requires_grad=True)
y = w
y *= 2  # cause
