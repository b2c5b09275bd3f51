"""A penalty that is computed, added to the loss, and teaches nothing."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(5, 3), torch.randn(5, 1)
for _ in range(2):
    out = model(x)
    penalty = (out.detach() ** 2).mean()  # cause
    loss = ((out - y) ** 2).mean() + 0.1 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
