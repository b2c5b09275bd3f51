"""(5, 1) against (5,) becomes (5, 5)."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
x, y = torch.randn(5, 3), torch.randn(5)
out = model(x)
error = out - y  # cause
loss = (error * error).mean()
loss.backward()
