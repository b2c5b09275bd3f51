"""A training loop without a step."""

import torch

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(6, 2)
for _ in range(3):
    optimizer.zero_grad()
    loss = (net(x) - 1).pow(2).mean()
    loss.backward()  # cause
