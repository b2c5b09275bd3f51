"""The inner step of a meta-learner leaves the graph, so that the outer optimizer gets no gradient."""

import torch

w = torch.nn.Parameter(torch.tensor(2.0))
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(3):
    meta = torch.tensor(0.0)
    for target in (1.0, 3.0):
        (g,) = torch.autograd.grad((w - target) ** 2, [w])
        fast = (w - 0.1 * g).detach().requires_grad_()  # cause
        meta = meta + (fast - target) ** 2
    optimizer.zero_grad()
    meta.backward()
    optimizer.step()
