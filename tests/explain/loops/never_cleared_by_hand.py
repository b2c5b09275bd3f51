"""Several parameters, updated by hand, whose gradients nobody clears."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.zeros(2, requires_grad=True)
c = torch.zeros(2, requires_grad=True)
for _ in range(4):
    loss = ((w * 2 + b) * 3 + c).sum()
    loss.backward()  # cause
    with torch.no_grad():
        for p in (w, b, c):
            p -= 0.1 * p.grad
