"""(5, 1) against (5,) becomes (5, 5) within the loss function."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
x, y = torch.randn(5, 3), torch.randn(5)
loss = F.mse_loss(model(x), y)  # cause
loss.backward()
