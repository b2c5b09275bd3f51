"""The programs of the texts gviz was made for: lessons on computation graphs in PyTorch, line by line."""

import pytest
from twin import compare

PROGRAMS = {
    "a branch is traced away": """
class NonTraceableModel(torch.nn.Module):
    __module__ = "program"
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x + 2
model = NonTraceableModel()
traced_model = torch.jit.trace(model, torch.tensor(0))
print(model(torch.tensor(1)), traced_model(torch.tensor(1)))
""",
    "where keeps both branches": """
class TraceableModel(torch.nn.Module):
    __module__ = "program"
    def forward(self, x):
        return torch.where(x.sum() > 0, x * 2, x + 2)
traced_fn = torch.jit.trace(TraceableModel(), torch.randn(3))
print(traced_fn(torch.tensor(1)), traced_fn(torch.tensor(0)))
""",
    "a mask sorts": """
x = torch.tensor([0.1900, -0.7620, -0.1896, 0.5])
mask = x <= 0
indices = torch.argsort(mask, stable=True)
print(mask, indices, x[indices], torch.cat([x[x > 0], x[x <= 0]]))
""",
    "a sum of a product and a sine": """
import math
from torch import tensor
x = tensor(4., requires_grad=True); y = tensor(math.pi, requires_grad=True)
z = x*x + torch.sin(2*y)
z.backward()
see(x, y, z); print(x.grad, y.grad)
""",
    "a graph is built": """
from torch import tensor, empty, ones, zeros
v = zeros(2)
print(v.data); print(v.grad); print(v.grad_fn); print(v.is_leaf); print(v.requires_grad)
x = ones(2, requires_grad=True)
y = empty(2).fill_(3)
y.requires_grad = True
print(y)
z = (y*y).sum()
print(z); print(y.is_leaf, z.is_leaf); print(y.requires_grad, y.grad_fn); print(z.requires_grad); see(z)
print(y.grad)
z.backward()
print(y.grad)
attempt(lambda: z.backward())
""",
    "constants": """
from torch import tensor, ones
x = ones(1, requires_grad=True); a = tensor(-4.)
z = 8*x + a
z.backward()
print(x, x.grad); print(a, a.grad); print(z); see(x, a, z)
""",
    "gradients of intermediate nodes": """
from torch import tensor
x = tensor(2., requires_grad=True)
y = x**2;   y.retain_grad()
z = 2*y;    z.retain_grad()
z.backward()
print(z.item(), y.item(), x.item()); print(z.grad.item(), y.grad.item(), x.grad.item()); see(x, y, z)
""",
    "the graph is rebuilt": """
from torch import empty
for i in range(1, 3):
    x = empty(2).fill_(i).requires_grad_(True)
    z = x.dot(x)
    z.backward()
    print(z.item(), x.grad)
x = empty(2).requires_grad_(True)
for i in range(1, 3):
    with torch.no_grad():
        x.fill_(i)
    z = x.dot(x)
    z.backward()
    print(z.item(), x.grad.numpy()); see(x, z)
    x.grad.zero_()
for i in range(1, 3):
    x.data.fill_(i)
    z = x.dot(x)
    z.backward()
    print(z.item(), x.grad.numpy()); see(x, z)
    x.grad.zero_()
x = empty(2).requires_grad_(True)
xd = x.detach()
for i in range(1, 3):
    xd.fill_(i)
    z = x.dot(x)
    z.backward()
    print(z.item(), x.grad); see(x, z)
    x.grad.zero_()
""",
    "recording is paused": """
from torch import ones
x = ones(1, requires_grad=True)
with torch.no_grad():
    z1 = 2 * x
    with torch.enable_grad():
        z2 = 2 * x
print(x.requires_grad, z1.requires_grad, z2.requires_grad); see(z1, z2)
@torch.no_grad()
def test_function(x): return x * 2
see(test_function(x))
""",
    "detached": """
from torch import tensor
x = tensor([1., 2.], requires_grad=True)
y = x.detach()
print(x); print(y)
y[0] = 5
print(x); see(x, y)
""",
    "five ways to form y": """
from torch import tensor
for make in ("tensor(3.).requires_grad_(True)", "x", "tensor(1.)", "x.detach().clone()", "x.clone()"):
    x = tensor(3.).requires_grad_(True)
    y = eval(make)
    z = x + y*y
    z.backward()
    see(x, y, z); print(make, x.grad, y.grad if y.is_leaf else None, y.requires_grad, y)
x = torch.ones(1, requires_grad=True)
with torch.no_grad():
    y = x.clone()
see(y, x.detach().clone(), x.clone())
""",
    "what not to do with leaves": """
from torch import tensor, ones
x = ones(1); before = id(x)
x += 1; see(x, id(x) == before)
x.add_(1); see(x, id(x) == before)
x = x + 1; see(x, id(x) == before)
x = tensor(1., requires_grad=True)
def f():
    global x
    x += 1
attempt(f)
y = x
def g():
    global y
    y *= 1
attempt(g)
x = tensor(1., requires_grad=True)
y = 2*x;   print(y)
y += 2;    print(y)
y.log_();  print(y)
y.backward(); print(x.grad); see(x, y)
x = tensor(1., requires_grad=True)
x = x + 1; print(x); see(x)
x, w = torch.ones(1), torch.ones(1, requires_grad=True)
w[0] = 1.
y = x*w
""",
    "slices": """
from torch import tensor, ones
x = tensor(1., requires_grad=True)
s = ones(2)
s[1] = s[0] * x
z = s.sum(); see(s, z); print(s)
attempt(lambda: z.backward())
s = ones(2)
s[1] = s[0].clone() * x
z = s.sum()
z.backward(); see(s, z, x); print(s)
""",
    "a list and cat, or slice by slice": """
y = []
for i in range(5):
    x = torch.ones(1, 4, 4, requires_grad=True)
    y.append(x)
y = torch.cat(y, dim=0)
z = y.sum()
z.backward(); see(x, y, z)
y = torch.empty(5, 4, 4)
for i in range(5):
    x = torch.ones(4, 4, requires_grad=True)
    y[i] = x
z = y.sum()
z.backward(); see(x, y, z)
""",
    "a picture's model": """
from torch import tensor, ones
w, b = ones(5, requires_grad=True), tensor(0., requires_grad=True)
x = ones(5)
z = x.dot(w) + b
see(z); print(z)
""",
    "minimization": """
def fun(x):
    return x[0]**2 + (x[1]-1)**2
x = torch.tensor([1., 2.], requires_grad=True)
optimizer = torch.optim.SGD([x], lr=1, momentum=0.5)
for it in range(20):
    optimizer.zero_grad()
    y = fun(x)
    y.backward()
    optimizer.step()
    print(y.item(), x.detach().numpy()); see(x, y)
""",
    "two losses": """
import torch
from torch.autograd import Variable
a = Variable(torch.tensor([[.1, .2, .3, .4]]), requires_grad=True)
b = a**2
c = b*2
d = c.mean()
e = c.sum()
d.backward(retain_graph=True); see(a)
e.backward(retain_graph=True); see(a)
d.backward(); see(a)
attempt(lambda: e.backward()); see(a, b, c, d, e)
""",
    "the gradient is eight": """
import torch
x = torch.ones([3, 3], requires_grad=True)
y = 2 * x + 3; print(y)
z = 4 * y - 1; print(z)
z.sum().backward()
print(x.grad); see(x, y, z)
""",
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    compare(PROGRAMS[name])
