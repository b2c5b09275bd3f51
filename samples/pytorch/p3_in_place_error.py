"""The line behind an in-place error

PyTorch says that a variable needed for gradient computation was modified by
an inplace operation, and names neither. The debugger opens where backward
failed: at the node exp. The rule of exp needs its own result, y, which has
version 1 by now, but was kept at version 0. The event that wrote it is in
the tape: y.add_(1). y = y + 1 makes a new tensor, and all is well.
"""

import torch

x = torch.tensor([0.0, 1.0], requires_grad=True)
y = torch.exp(x)
y = y + 1
y.sum().backward()
print(f"x.grad = {[round(g, 4) for g in x.grad.tolist()]}")

x.grad = None
y = torch.exp(x)
y.add_(1)
y.sum().backward()
