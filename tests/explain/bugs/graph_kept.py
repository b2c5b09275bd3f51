"""A list of losses keeps every graph alive."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
losses = []
for _ in range(4):
    loss = (w * w).sum()
    loss.backward()
    w.grad = None
    losses.append(loss)  # cause
print(sum(losses))
