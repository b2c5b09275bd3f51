"""Gradients of gradients: hooks, a Newton step, Jacobians and Hessians, a penalty on the gradient."""

import torch
from torch.autograd import grad
from torch.autograd.functional import hessian, hvp, jacobian, vjp

x = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
y = x**4
derivatives = [y]
for _ in range(4):
    (y,) = grad(y, x, create_graph=True)
    derivatives.append(y)
print([round(d.item(), 6) for d in derivatives], y.requires_grad)


def banana(p):
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


p = torch.tensor([-1.2, 1.0], dtype=torch.float64)
for _ in range(5):
    g = jacobian(banana, p)
    p = p - torch.linalg.solve(hessian(banana, p), g)
    print(f"{banana(p).item():.6e}", [round(v, 6) for v in p.tolist()])
v = torch.tensor([1.0, 2.0], dtype=torch.float64)
print(hvp(banana, p, v)[1].numpy().round(4), vjp(lambda q: q * q.sum(), p, v)[1].numpy().round(4))

seen = []
w = torch.tensor([1.0, -2.0], requires_grad=True)
h = w * 3
h.retain_grad()
handle = h.register_hook(lambda g: seen.append(g.clone()) or g * 10)
(h**2).sum().backward()
print(seen, h.grad, w.grad)
handle.remove()

inputs = torch.tensor([[0.5, -1.0], [2.0, 1.0]], requires_grad=True)
critic = torch.nn.Linear(2, 1)
with torch.no_grad():
    critic.weight.copy_(torch.tensor([[0.3, -0.6]]))
    critic.bias.zero_()
scores = torch.tanh(critic(inputs))
(gradient,) = grad(scores.sum(), inputs, create_graph=True)
penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
penalty.backward()
print(f"{penalty.item():.5f}", critic.weight.grad)
