"""A Legendre polynomial as a function with a backward of its own."""

import math

import torch


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        ctx.save_for_backward(values)
        return 0.5 * (5 * values**3 - 3 * values)

    @staticmethod
    def backward(ctx, grad_output):
        (values,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * values**2 - 1)


x = torch.linspace(-math.pi, math.pi, 300, dtype=torch.float64)
y = torch.sin(x)
a = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
b = torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)
c = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
d = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)

P3 = LegendrePolynomial3.apply
for step in range(60):
    prediction = a + b * P3(c + d * x)
    loss = (prediction - y).pow(2).sum()
    if step % 20 == 19:
        print(step, f"{loss.item():.5f}", prediction.grad_fn.name())
    loss.backward()
    with torch.no_grad():
        for parameter in (a, b, c, d):
            parameter -= 5e-6 * parameter.grad
            parameter.grad.zero_()

print(P3(torch.tensor(0.5, requires_grad=True)), torch.autograd.gradcheck(P3, (x[:3].clone().requires_grad_(),)))
print(f"{a.item():.4f} {b.item():.4f} {c.item():.4f} {d.item():.4f}")
