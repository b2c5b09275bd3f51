"""Attention in which one row is masked everywhere."""

import torch

q = torch.ones(2, 3, requires_grad=True)
mask = torch.tensor([[True, True], [False, True]])
scores = (q @ q.T).masked_fill(mask, float("-inf"))  # cause
chances = torch.softmax(scores, dim=-1)
loss = (chances @ q).sum()
loss.backward()
