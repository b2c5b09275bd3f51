"""A product and a sine: where the gradients 8 and 2 come from

Press n to step: four boxes for x * x and sin(2 * y), then z = 16, then back.
The pass starts at z with the gradient 1, and the addition hands that 1 to
both of its inputs. sin multiplies it by cos(2 * y) = 1, and 2 * y by its
constant: y.grad becomes 2. x * x sends 4 over each of its two inputs, and
both go to the one x, where they meet: 4 + 4, so x.grad becomes 8. N steps
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
