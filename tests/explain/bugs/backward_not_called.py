"""The loss does not go down: backward is named, and not called."""

import torch

torch.manual_seed(0)
x, y = torch.randn(8, 2), torch.randn(8, 1)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward  # noqa: B018
    optimizer.step()  # cause
