"""An update by hand gives its result to the name of a loop, and leaves the parameter as it was."""

import torch

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
x = torch.randn(6, 2)
for _ in range(3):
    net.zero_grad()
    loss = (net(x) - 1).pow(2).mean()
    loss.backward()
    for p in net.parameters():
        p = p - 0.1 * p.grad  # cause
