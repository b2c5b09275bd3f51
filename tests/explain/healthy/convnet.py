"""A convolutional net with batch norm and pooling; it is evaluated in between."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(3):
    net.train()
    x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 3, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(x).argmax(1) == y).float().mean().item()
