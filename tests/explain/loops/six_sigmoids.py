"""Six layers with sigmoids, each on a line of its own: the first hardly learns."""

import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(16, 16) for _ in range(6)])
        self.head = torch.nn.Linear(16, 1)

    def forward(self, x):
        one, two, three, four, five, six = self.layers
        x = torch.sigmoid(one(x))
        x = torch.sigmoid(two(x))
        x = torch.sigmoid(three(x))
        x = torch.sigmoid(four(x))
        x = torch.sigmoid(five(x))
        x = torch.sigmoid(six(x))  # cause
        return self.head(x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    loss = torch.nn.functional.mse_loss(net(torch.randn(32, 16)), torch.randn(32, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
