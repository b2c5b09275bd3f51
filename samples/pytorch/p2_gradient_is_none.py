"""Why is this gradient None

The model trains its last layer only: first.weight.grad is None. In forward,
the hidden values go through .detach(), which was meant to save memory. Look
at the node Detach: no line leads back from it, so no gradient can. Press f
twice, to the end of the first pass, and type :why first.weight.grad to
see why. The second model leaves it out, and the gradient is there.
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, cut):
        super().__init__()
        self.cut = cut
        self.first = nn.Linear(2, 3)
        self.last = nn.Linear(3, 1)

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        if self.cut:
            hidden = hidden.detach()
        return self.last(hidden)


torch.manual_seed(0)
x = torch.tensor([[1.0, -1.0]])
for cut in (True, False):
    net = Net(cut)
    loss = net(x).square().sum()
    loss.backward()
    grad = net.first.weight.grad
    print(f"cut = {cut}  first.weight.grad is {'None' if grad is None else 'there'}")
