"""A block whose forward is computed again in backward."""

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4))
head = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(6, 4)
    loss = head(checkpoint(block, x, use_reentrant=False)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
