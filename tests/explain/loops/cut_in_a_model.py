"""A model whose first layer is cut off by numpy, though the optimizer has all of it."""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = torch.nn.Linear(2, 3)
        self.dec = torch.nn.Linear(3, 1)

    def forward(self, x):
        h = torch.tanh(self.enc(x))
        h = torch.tensor(h.detach().numpy())  # cause
        return self.dec(h)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
