"""A tensor that backward needs is changed in place."""

import torch

w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
h = torch.sigmoid(w)
loss = (h * 2).sum()
h.add_(1)  # cause
loss.backward()
