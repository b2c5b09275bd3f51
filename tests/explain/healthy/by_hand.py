"""Logistic regression with an update by hand."""

import torch

torch.manual_seed(0)
w, b = torch.zeros(3, requires_grad=True), torch.zeros(1, requires_grad=True)
x = torch.randn(10, 3)
y = (x[:, 0] > 0).float()
for _ in range(5):
    loss = torch.nn.functional.binary_cross_entropy(torch.sigmoid(x @ w + b), y)
    loss.backward()
    with torch.no_grad():
        w -= 0.5 * w.grad
        b -= 0.5 * b.grad
    w.grad.zero_()
    b.grad = None
