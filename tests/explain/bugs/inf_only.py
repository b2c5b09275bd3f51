"""A loss that overflows to infinity, and never becomes nan."""

import torch

w = torch.tensor([100.0, 1.0], requires_grad=True)
e = torch.exp(w)  # cause
loss = e.sum()
loss.backward()
