"""A lost leaf: after x = x + 1 there is no x.grad

x = x + 1 does not change the leaf. It makes a second box and gives that one
the name x; watch it with n at the start. After the first backward pass (press
f twice) the gradient 4 stands on the old leaf, #1, which here only `leaf` can
still reach. The x that is left is the result of an operation: no .grad.
x += 1 would keep the leaf, but autograd forbids in-place writes to a leaf
that requires a gradient: that error is caught and printed. Under
no_grad the write is allowed. x stays the box it was, and its value becomes 2.
"""

import gviz.engine as torch

x = torch.tensor(1.0, requires_grad=True)
leaf = x
x = x + 1
y = x * x
y.backward()
print(f"x.is_leaf = {x.is_leaf}  leaf.grad = {leaf.grad.item():.0f}")

x = torch.tensor(1.0, requires_grad=True)
try:
    x += 1
except RuntimeError as error:
    print(error)

with torch.no_grad():
    x += 1
y = x * x
y.backward()
print(f"x.is_leaf = {x.is_leaf}  x.grad = {x.grad.item():.0f}")
