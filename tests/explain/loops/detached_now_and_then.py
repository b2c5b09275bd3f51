"""A recurrent net that detaches its state every third step, within what one backward goes through."""

import torch

torch.manual_seed(0)
emb, cell, head = torch.nn.Embedding(5, 3), torch.nn.Linear(7, 4), torch.nn.Linear(4, 1)
parameters = [*emb.parameters(), *cell.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(2):
    h = torch.zeros(2, 4)
    for step in range(8):
        if step and step % 3 == 0:
            h = h.detach()  # cause
        x = emb(torch.tensor([step % 5, 1]))
        h = torch.tanh(cell(torch.cat([x, h], 1)))
    loss = head(h).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
last = h.detach()  # no pass comes after it
