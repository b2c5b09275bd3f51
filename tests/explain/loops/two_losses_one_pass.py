"""Two heads on one trunk, and one backward of the sum of their losses; or, if asked so, one for each."""

import torch

torch.manual_seed(0)
F = torch.nn.functional
x, a, b = torch.randn(6, 4), torch.randn(6, 2), torch.randint(0, 3, (6,))
trunk, one, two = torch.nn.Linear(4, 5), torch.nn.Linear(5, 2), torch.nn.Linear(5, 3)
h = torch.tanh(trunk(x))
first = F.mse_loss(one(h), a)
second = F.cross_entropy(two(h), b)
if "alone" in globals():
    losses = {"first": first, "second": 0.5 * second}
    each = {name: torch.autograd.grad(loss, trunk.weight, retain_graph=True)[0] for name, loss in losses.items()}
else:
    loss = first + 0.5 * second
    loss.backward()
