"""A model with a learned temperature that is a plain tensor, so that parameters() does not have it."""

import torch


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)
        self.temperature = torch.ones(1, requires_grad=True)  # cause

    def forward(self, x):
        return self.linear(x) / self.temperature


torch.manual_seed(0)
net = Scaled()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
