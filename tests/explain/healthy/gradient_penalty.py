"""A penalty on the gradient itself: a graph of gradients."""

import torch

torch.manual_seed(0)
judge = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(judge.parameters())
for _ in range(2):
    x = torch.randn(6, 2, requires_grad=True)
    score = judge(x)
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    loss = score.mean() + 10 * (slope.norm(dim=1) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
