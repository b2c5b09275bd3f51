"""A nan on the way that a mask stops before it reaches a parameter."""

import torch

w = torch.tensor([2.0, 3.0], requires_grad=True)
x = torch.tensor([0.0, 4.0])
ratio = x / x  # cause
safe = torch.nan_to_num(ratio)
loss = (w * safe).sum()
loss.backward()
