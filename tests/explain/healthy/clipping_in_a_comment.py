"""A training loop that clips nothing, and says so beside the line that makes its result."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 3)
for _ in range(2):
    optimizer.zero_grad()
    out = model(x)  # a small model: no clip_grad_norm_ needed
    out.pow(2).mean().backward()
    optimizer.step()
