"""A small linear model, trained by SGD with momentum

The points lie on target = 2 * x + 1, w and b start at 0. Every iteration
builds a new graph, walks back through it and moves w and b: press f to go
through forward pass, backward pass and optimizer. In the first backward pass
w.grad becomes -7, and the optimizer takes w an eighth of that up, to 0.875. In
the third one w.grad is only -0.5938, a step of 0.074. But half of the step
before, 0.461, comes on top: that is momentum, and w shoots past 2 to 2.332.
zero_grad clears .grad, or the next pass would add to it.
"""

import gviz.engine as torch

x = torch.tensor([-1.0, 0.0, 1.0, 2.0])
target = torch.tensor([-1.0, 1.0, 3.0, 5.0])
w = torch.tensor(0.0, requires_grad=True)
b = torch.tensor(0.0, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=0.125, momentum=0.5)

for _ in range(4):
    optimizer.zero_grad()
    y = w * x + b
    loss = ((y - target) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(f"loss = {loss.item():.4f}  w = {w.item():.4f}  b = {b.item():.4f}")
