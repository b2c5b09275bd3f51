"""A recurrent net, trained over pieces of a sequence: the state is detached between them."""

import torch

torch.manual_seed(0)
cell, head = torch.nn.Linear(5, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(2, 4)
for _ in range(4):
    h = h.detach()
    outputs = []
    for _ in range(6):
        h = torch.tanh(cell(torch.cat([torch.randn(2, 1), h], 1)))
        outputs.append(head(h))
    loss = torch.stack(outputs).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
