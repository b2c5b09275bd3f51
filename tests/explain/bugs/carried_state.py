"""A hidden state is carried from one step of training into the next."""

import torch

torch.manual_seed(0)
cell = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
h = torch.zeros(1, 2)
for _ in range(3):
    x = torch.ones(1, 2)
    h = torch.tanh(cell(torch.cat([x, h], 1)))  # cause
    loss = h.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
