"""A list of losses that is made a tensor by its numbers."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
losses = [(w * w).sum(), w.sum()]
loss = torch.tensor(losses).mean()  # cause
loss.backward()
