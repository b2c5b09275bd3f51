"""A parameter that a conversion has turned into a result."""

import torch

w = torch.ones(3, requires_grad=True)
w = w.double()  # cause
loss = (w * 2).sum()
loss.backward()
print(w.grad)
