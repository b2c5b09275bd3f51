"""A slope that was taken without a graph, and is to be differentiated again."""

import torch

x = torch.tensor([[0.5], [1.0]], requires_grad=True)
w = torch.tensor([[2.0]], requires_grad=True)

u = torch.tanh(x @ w)
(slope,) = torch.autograd.grad(u, x, torch.ones_like(u))  # cause
(bend,) = torch.autograd.grad(slope, x, torch.ones_like(slope), create_graph=True)
