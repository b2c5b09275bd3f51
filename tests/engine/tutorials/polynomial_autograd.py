"""The same cubic, gradients by backward."""

import math

import torch

torch.set_default_device("cpu")
x = torch.linspace(-math.pi, math.pi, 500, dtype=torch.float64)
y = torch.sin(x)
weights = [torch.full((), value, dtype=torch.float64, requires_grad=True) for value in (0.5, -0.3, 0.1, 0.2)]

learning_rate = 1e-6
for step in range(200):
    prediction = sum(w * x**power for power, w in enumerate(weights))
    loss = (prediction - y).pow(2).sum()
    if step % 40 == 39:
        print(step, round(loss.item(), 4), loss)
    loss.backward()
    with torch.no_grad():
        for w in weights:
            w -= learning_rate * w.grad
            w.grad = None

print([f"{w.item():.5f}" for w in weights], weights[0], weights[0].is_leaf)
