"""Scores that are masked each time; once nothing is left of a row, and what follows is nan."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    scores = (w * 3).masked_fill(torch.tensor([True, step == 1]), float("-inf"))
    loss = (torch.softmax(scores, dim=0) * w).sum()
    loss.backward()
    optimizer.step()
