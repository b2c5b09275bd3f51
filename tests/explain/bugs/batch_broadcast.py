"""(5, 1) against (5,) within the loss function, where the row is a batch out of more data."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
x, y = torch.randn(10, 3), torch.randn(10)
batch = torch.tensor([0, 2, 4, 6, 8])
loss = F.mse_loss(model(x[batch]), y[batch])  # cause
loss.backward()
