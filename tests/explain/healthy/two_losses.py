"""Two losses over one graph, the first with retain_graph."""

import torch

torch.manual_seed(0)
trunk, one, other = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *one.parameters(), *other.parameters()], lr=0.1)
for _ in range(3):
    h = torch.tanh(trunk(torch.randn(5, 3)))
    optimizer.zero_grad()
    one(h).pow(2).mean().backward(retain_graph=True)
    other(h).abs().mean().backward()
    optimizer.step()
