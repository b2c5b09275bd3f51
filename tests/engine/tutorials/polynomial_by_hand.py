"""A cubic fitted to a sine, gradients worked out by hand."""

import math

import torch

dtype = torch.float
device = torch.device("cpu")

x = torch.linspace(-math.pi, math.pi, 500, device=device, dtype=dtype)
y = torch.sin(x)
a, b, c, d = (torch.tensor(value, device=device, dtype=dtype) for value in (0.5, -0.3, 0.1, 0.2))

learning_rate = 1e-6
for step in range(200):
    prediction = a + b * x + c * x**2 + d * x**3
    loss = (prediction - y).pow(2).sum().item()
    if step % 40 == 39:
        print(step, f"{loss:.2f}")
    grad_prediction = 2.0 * (prediction - y)
    a -= learning_rate * grad_prediction.sum()
    b -= learning_rate * (grad_prediction * x).sum()
    c -= learning_rate * (grad_prediction * x**2).sum()
    d -= learning_rate * (grad_prediction * x**3).sum()

print(f"y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")
