"""A layer that forward forgets."""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used = torch.nn.Linear(3, 3)
        self.extra = torch.nn.Linear(3, 3)  # cause

    def forward(self, x):
        return self.used(x)


torch.manual_seed(0)
net = Net()
loss = net(torch.ones(2, 3)).mean()
loss.backward()
