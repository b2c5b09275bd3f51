"""A parameter that is detached wherever it is used."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
v = torch.tensor([1.0, 2.0], requires_grad=True)
a = w.detach() * 2
b = w.detach() * 3
c = w.detach() * 4
d = w.detach() * 5
loss = (a + b + c + d + v).sum()
loss.backward()
