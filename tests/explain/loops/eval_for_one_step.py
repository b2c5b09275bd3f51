"""A step after a validation trains in evaluation mode; then the model is switched back."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(5):
    if i == 2:
        model.eval()  # cause
    loss = (model(torch.randn(6, 3)) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    model.train()
