"""Learning to learn: an inner step by autograd.grad, through which the outer loss goes back."""

import torch

torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(3, 1))
rate = torch.nn.Parameter(torch.tensor(0.1))
probe = torch.ones(4, 3, requires_grad=True)
optimizer = torch.optim.SGD([w, rate], lr=0.01)
for _ in range(2):
    x = torch.randn(4, 3)
    (inner,) = torch.autograd.grad((x @ w).pow(2).mean(), w, create_graph=True)
    loss = (x @ (w - rate * inner) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
(sensitivity,) = torch.autograd.grad((probe @ w).sum(), probe)
