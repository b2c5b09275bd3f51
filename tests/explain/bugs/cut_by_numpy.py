"""A branch goes through numpy, and autograd does not see it."""

import torch

torch.manual_seed(0)
a, b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
x = torch.ones(2, 3)
h = a(x)
loud = torch.from_numpy(h.detach().numpy() * 2)  # cause
loss = b(loud).mean()
loss.backward()
