"""A loss that is nan from the second time on: a chance has become 0, and 0 * log(0) is none."""

import torch

w = torch.tensor([0.5, 0.5, 0.5], requires_grad=True)
label = torch.tensor([0.0, 0.0, 1.0])
optimizer = torch.optim.SGD([w], lr=0.0)
for step in range(4):
    chance = w * torch.tensor([step == 0, step == 0, True]).float()
    loss = -(label * torch.log(chance)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
