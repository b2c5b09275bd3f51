"""All distances between points: a column against a row, on purpose."""

import torch

torch.manual_seed(0)
points = torch.nn.Parameter(torch.randn(6, 2))
optimizer = torch.optim.Adam([points], lr=0.1)
for _ in range(3):
    apart = points[:, None, :] - points[None, :, :]
    distance = (apart.pow(2).sum(-1) + 1e-6).sqrt()
    loss = torch.relu(1 - distance).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
