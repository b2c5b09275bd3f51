"""A program that fails between the steps of its two optimizers."""

import torch

torch.manual_seed(0)
a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
one, other = torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
b(a(torch.ones(1, 2))).sum().backward()
one.step()
raise RuntimeError("something else")
