"""A model that takes the number out of a tensor on its way: nothing fails, and it does not learn."""

import math

import torch

w = torch.tensor(2.0, requires_grad=True)
v = torch.tensor(3.0, requires_grad=True)
h = w * w
loss = v * torch.tensor(math.sqrt(h.item()))  # cause
loss.backward()
