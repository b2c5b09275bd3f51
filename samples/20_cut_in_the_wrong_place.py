"""detach, .item() and numpy in the wrong place: the way back is cut

y = v * sqrt(h) with h = w * w; w.grad is 3 as long as every step to y is an
operation on tensors. Each of the other three leaves the graph on its way:
nothing fails, v still gets its gradient, and w.grad is None. Go to the end
and ask :why w.grad, it names the line where the way is cut, and where the
numbers come back as a new tensor with no history. gviz check finds all three
in one go. To print or to collect a number, .item() and detach() are right.
"""

import math

import gviz.engine as torch


def root(h):
    return torch.sqrt(h)


def detached(h):
    return torch.sqrt(h.detach())


def by_item(h):
    return torch.tensor(math.sqrt(h.item()))


def by_numpy(h):
    return torch.sqrt(torch.from_numpy(h.detach().numpy()))


weights = []
v = torch.tensor(3.0, requires_grad=True)
for step in (root, detached, by_item, by_numpy):
    w = torch.tensor(2.0, requires_grad=True)
    weights.append(w)
    h = w * w
    y = v * step(h)
    v.grad = None
    y.backward()
    print(f"{step.__name__}: w.grad = {w.grad}  v.grad = {v.grad}")
