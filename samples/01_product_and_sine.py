"""A product and a sine: where the gradients 8 and 2 come from

Press n to step: four operations for x * x and sin(2 * y), then z = 16, then
back; v shows them as a graph, a list, or both. Addition hands the 1 that the
pass starts with to both inputs. g is the gradient that came in: sin sends on
g * cos(2 * y) = 1, and 2 * y twice that: y.grad becomes 2. x * x sends 4 to
each of its two inputs, and both are x: 4 + 4, so x.grad becomes 8. N steps
back through all of it, f runs to the end of a pass.
"""

import math

import gviz.engine as torch

x = torch.tensor(4.0, requires_grad=True)
y = torch.tensor(math.pi, requires_grad=True)

z = x * x + torch.sin(2 * y)
z.backward()

print(f"z = {z.item():.4f}")
print(f"x.grad = {x.grad.item():.4f}")
print(f"y.grad = {y.grad.item():.4f}")
