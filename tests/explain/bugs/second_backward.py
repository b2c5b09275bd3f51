"""backward() twice through one graph."""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = (x * x).sum()
loss.backward()  # cause
loss.backward()
