"""A backbone that is not trained, and a head that is."""

import torch

torch.manual_seed(0)
backbone = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
for parameter in backbone.parameters():
    parameter.requires_grad_(False)
head = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(head(backbone(torch.randn(6, 4))), torch.randint(0, 2, (6,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
