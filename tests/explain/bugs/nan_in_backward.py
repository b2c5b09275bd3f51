"""The branch that where() does not take has an infinite derivative."""

import torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
root = torch.sqrt(x)  # cause
loss = torch.where(x > 0, root, torch.zeros(2)).sum()
loss.backward()
