"""A line search: it tries shorter steps along one gradient, from the same parameters each time."""

import torch

w = torch.nn.Parameter(torch.tensor([-1.2, 1.0]))
optimizer = torch.optim.SGD([w], lr=1.0)


def valley(v):
    return (1 - v[0]) ** 2 + 10 * (v[1] - v[0] ** 2) ** 2


for _ in range(8):
    loss = valley(w)
    optimizer.zero_grad()
    loss.backward()
    before, length = w.detach().clone(), 0.5
    while True:
        optimizer.param_groups[0]["lr"] = length
        optimizer.step()
        with torch.no_grad():
            if valley(w) < loss:
                break
            w.copy_(before)
        length /= 2
