"""An evaluation after each epoch switches to evaluation mode, and nothing switches back."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(8, 3), torch.randn(8, 1)
for _epoch in range(3):
    for _ in range(2):
        optimizer.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        optimizer.step()
    net.eval()  # cause
    with torch.no_grad():
        print(((net(x) - y) ** 2).mean().item())
