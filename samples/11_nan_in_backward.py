"""A nan that first appears in the backward pass

where takes sqrt(x) only for x > 0, and forward all is well: y = [0 2]. Press
c, which stops at the first nan: sqrt has sent it to x. S goes back to how it
came about. where has sent the gradient 0 to the element it did not take, but
the rule of sqrt divides it by 2 * sqrt(0): 0 / 0 is nan. A zero does not stop
a nan. And the next update would carry it into every weight. In the second
half the first where gives sqrt a 1 instead of the 0: now it can divide, and
x.grad is [0 0.25].
"""

import gviz.engine as torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, torch.sqrt(x), 0.0)
y.sum().backward()
print(f"y = {y.tolist()}  x.grad = {x.grad.tolist()}")

x = torch.tensor([0.0, 4.0], requires_grad=True)
positive = x > 0
safe = torch.where(positive, x, 1.0)
y = torch.where(positive, torch.sqrt(safe), 0.0)
y.sum().backward()
print(f"y = {y.tolist()}  x.grad = {x.grad.tolist()}")
