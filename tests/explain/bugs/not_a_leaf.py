""".grad of a result."""

import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3  # cause
loss = y.sum()
loss.backward()
print(y.grad)
