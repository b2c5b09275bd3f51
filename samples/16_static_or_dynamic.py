"""Static or dynamic: a graph before its numbers, or with them

The first half builds the graph of z = x * x + sin(2y) as TensorFlow 1 did: in
the block nothing is computed, the boxes have no values. Go through run with s:
now the same boxes fill, one after the other, and fill again at the second run.
The gradient is part of that graph, too: it was built with it. The second half
is the same program in eager mode: each line computes at once, every call makes
boxes of its own, and the graph of the gradient is never built.
"""

import gviz.engine as torch
from gviz.engine import static

with static.Graph() as graph:
    x = static.placeholder("x", requires_grad=True)
    y = static.placeholder("y")
    z = x * x + torch.sin(2 * y)
    (dz_dx,) = static.gradients(z, x)
print(z)
for x_value in (2.0, 3.0):
    value, gradient = graph.run([z, dz_dx], {x: x_value, y: 0.0})
    print(f"static:  z = {value.item()}  dz/dx = {gradient.item()}")

for x_value in (2.0, 3.0):
    x = torch.tensor(x_value, requires_grad=True)
    z = x * x + torch.sin(2 * torch.tensor(0.0))
    z.backward()
    print(f"dynamic: z = {z.item()}  dz/dx = {x.grad.item()}")
