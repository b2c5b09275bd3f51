"""What is to be learned is a result that was made once, before the loop."""

import torch

w = torch.ones(1, requires_grad=True) * 2  # cause
x = torch.tensor([1.0, 2.0, 3.0])
for _ in range(3):
    loss = (x * w - 1).pow(2).mean()
    loss.backward()
