"""Gradients of two small batches added up on purpose before each step."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    for _ in range(2):
        x = torch.randn(4, 3)
        (model(x).pow(2).mean() / 2).backward()
    optimizer.step()
