"""A leaf that no name holds: its copy in another dtype has the name."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True).double()  # cause
loss = (w * w).sum()
loss.backward()
print(w.grad)
