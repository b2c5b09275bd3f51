"""What backward does: a gradient checked by hand, graphs, leaves, recording switched off, frozen parameters."""

import torch
from torch import nn, optim

a = torch.tensor([2.0, 3.0], requires_grad=True)
b = torch.tensor([6.0, 4.0], requires_grad=True)
Q = 3 * a**3 - b**2
print(Q, type(Q.grad_fn).__name__, Q.grad_fn.next_functions[0][0].name())
Q.backward(gradient=torch.tensor([1.0, 1.0]))
print(9 * a**2 == a.grad, -2 * b == b.grad)

x = torch.zeros(5, 5)
y = torch.ones(5, 5)
z = torch.ones((5, 5), requires_grad=True)
print(f"Does `a` require gradients?: {(x + y).requires_grad}", f"Does `b` require gradients?: {(x + z).requires_grad}")

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
with torch.no_grad():
    for number, parameter in enumerate(model.parameters()):
        parameter.copy_(torch.cos(torch.arange(parameter.numel()) + number).view_as(parameter))
for parameter in model[0].parameters():
    parameter.requires_grad = False
optimizer = optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
loss = (model(torch.tensor([[1.0, -1.0, 2.0]])) - torch.tensor([[1.0, 0.0]])).sum()
loss.backward()
optimizer.step()
print([parameter.grad is None for parameter in model.parameters()], model[2].bias)

w = torch.ones(5, 3, requires_grad=True)
bias = torch.zeros(3, requires_grad=True)
z = torch.matmul(torch.ones(5), w) + bias
loss = nn.functional.binary_cross_entropy_with_logits(z, torch.zeros(3))
print(f"Gradient function for z = {type(z.grad_fn).__name__}", f"for loss = {type(loss.grad_fn).__name__}")
loss.backward(retain_graph=True)
print(w.grad, bias.grad, sep="\n")
with torch.no_grad():
    print((torch.matmul(torch.ones(5), w) + bias).requires_grad, z.detach().requires_grad)

inputs = torch.eye(4, 5, requires_grad=True)
out = (inputs + 1).pow(2).t()
for _ in range(2):
    out.backward(torch.ones_like(out), retain_graph=True)
    print(inputs.grad)
inputs.grad.zero_()
out.backward(torch.ones_like(out))
print(inputs.grad)
try:
    out.backward(torch.ones_like(out))
except RuntimeError as error:
    print(str(error)[:61])
