"""A bias so low that no unit of the layer ever fires."""

import torch

torch.manual_seed(0)
a, b = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
with torch.no_grad():
    a.bias.fill_(-100.0)
optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for _ in range(3):
    h = torch.relu(a(torch.randn(16, 4)))  # cause
    loss = (b(h) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
