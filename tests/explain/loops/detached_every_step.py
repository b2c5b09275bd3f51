"""A recurrent net that detaches its state at every step, on purpose: no step learns from a later one."""

import torch

torch.manual_seed(0)
cell, head = torch.nn.Linear(5, 4), torch.nn.Linear(4, 1)
h = torch.zeros(2, 4)
losses = []
for _ in range(4):
    h = torch.tanh(cell(torch.cat([torch.randn(2, 1), h.detach()], 1)))
    losses.append(head(h).pow(2).mean())
sum(losses).backward()
