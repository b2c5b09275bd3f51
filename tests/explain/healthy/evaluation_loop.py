"""Each epoch is evaluated in evaluation mode, once with a graph that nothing uses, and then trained on."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(8, 3), torch.randn(8, 1)
for _epoch in range(3):
    net.train()
    for _ in range(2):
        optimizer.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        optimizer.step()
    net.eval()
    print(((net(x) - y) ** 2).mean().item())
    with torch.no_grad():
        print(((net(x) - y) ** 2).mean().item())
