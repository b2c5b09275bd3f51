"""Learning to learn by the first order: weights adapted for several tasks wait for one outer pass."""

import torch

torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(3, 1))
optimizer = torch.optim.SGD([w], lr=0.01)
for _ in range(2):
    outer = 0.0
    for _ in range(2):
        x, fast = torch.randn(4, 3), w
        for _ in range(2):
            (inner,) = torch.autograd.grad((x @ fast).pow(2).mean(), fast)
            fast = fast - 0.1 * inner
        outer = outer + (torch.randn(4, 3) @ fast - 1).pow(2).mean()
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
