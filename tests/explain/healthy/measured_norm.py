"""The norm of the gradients is measured after the step, with a limit that it never reaches."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(12, 4)
norms = []
for _ in range(4):
    loss = (net(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    norms.append(float(nn.utils.clip_grad_norm_(net.parameters(), 1e9)))
