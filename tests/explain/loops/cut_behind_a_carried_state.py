"""A recurrent net that carries its state detached, as it should, and detaches its output too, which cuts it off."""

import torch

torch.manual_seed(0)
cell, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(2, 4)
for _ in range(3):
    optimizer.zero_grad()
    h = torch.tanh(cell(h))
    loss = head(h.detach()).pow(2).mean()  # cause
    loss.backward()
    optimizer.step()
    h = h.detach()
