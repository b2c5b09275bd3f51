import torch

x = torch.tensor(3.0, requires_grad=True)
y = x * x
y.backward(retain_graph=True)
(2 * x).backward()
(g,) = torch.autograd.grad(x * 5, x)
y.backward()
z = 7 * y
try:
    z.backward()
except RuntimeError:
    print("caught")
x.grad.zero_()
