"""Five ways to make y: the same z, but not the same gradients

z is 3 + 3 * 3 = 12 in every case; what x.grad becomes, the graph decides.
  A  y is a variable of its own    x.grad 1, y.grad 6
  B  y is another name for x       x.grad 7: 1, 3 and 3 meet in one box
  C  y is a constant               x.grad 1: nothing flows to a constant
  D  y is x.detach().clone()       x.grad 1: detach cuts the way back
  E  y is x.clone()                x.grad 7: 6 come back through the clone
A clone made under no_grad is cut off as in D. Each case has a graph of its
own: f runs to the end of a pass, n shows box by box where gradients flow.
"""

import gviz.engine as torch


def gradient(case, x, y):
    z = x + y * y
    z.backward()
    print(f"{case}: z = {z.item():.0f}  x.grad = {x.grad.item():.0f}")


x = torch.tensor(3.0, requires_grad=True)
y = torch.tensor(3.0, requires_grad=True)
gradient("A", x, y)

x = torch.tensor(3.0, requires_grad=True)
y = x
gradient("B", x, y)

x = torch.tensor(3.0, requires_grad=True)
y = torch.tensor(3.0)
gradient("C", x, y)

x = torch.tensor(3.0, requires_grad=True)
y = x.detach().clone()
gradient("D", x, y)

x = torch.tensor(3.0, requires_grad=True)
y = x.clone()
gradient("E", x, y)

x = torch.tensor(3.0, requires_grad=True)
with torch.no_grad():
    y = x.clone()
gradient("no_grad", x, y)
