"""A loop that clips its gradients, and never clears them."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(3):
    loss = (w * w).sum()
    loss.backward()  # cause
    torch.nn.utils.clip_grad_norm_([w], 1.0)
    optimizer.step()
