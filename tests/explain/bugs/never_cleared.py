"""A training loop without zero_grad."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.01)
for _ in range(3):
    loss = (w * 4).sum()
    loss.backward()  # cause
    optimizer.step()
