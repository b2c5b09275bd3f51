"""What if: z = x*x + sin(2y) again, with another x

Run to the end: z is 16, x.grad is 8. Then type :set x = 5, and every number
that follows from x stands beside the one it was: z 25, x.grad 10. y.grad is
not in the list: no path leads from x to it. :whatif grad z = 3 changes what
arrives at z, and all gradients are three times as large; :undo takes it back.
gviz runs the recorded operations again, never this program. After :undo,
:set x = -3..3 draws z and x.grad over x: a parabola, and its slope, a line.
"""

import math

import gviz.engine as torch

x = torch.tensor(4.0, requires_grad=True)
y = torch.tensor(math.pi, requires_grad=True)

z = x * x + torch.sin(2 * y)
z.backward()

print(f"z = {z.item():.4f}, x.grad = {x.grad.item():.4f}, y.grad = {y.grad.item():.4f}")
