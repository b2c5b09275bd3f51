"""backward() is given a gradient of another shape than its tensor has."""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * 2
y.backward(torch.ones(2))  # cause
