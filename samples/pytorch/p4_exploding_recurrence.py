"""A recurrent net whose gradient explodes

Ten times the state is multiplied by the same weight, which is 1.5. Step
backward through it: at every time step the gradient that flows on is 1.5
times as large. What each use adds to weight.grad grows with the number of
steps, and the last update throws the weight far away. Clipping the norm
scales the gradient down before the step: see it at the second half, where
.grad changes in place to 1.
"""

import torch

x = torch.ones(1)
for clip in (False, True):
    weight = torch.tensor([1.5], requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    state = x
    for _ in range(10):
        state = state * weight
    state.sum().backward()
    before = weight.grad.item()
    if clip:
        torch.nn.utils.clip_grad_norm_([weight], max_norm=1.0)
    optimizer.step()
    print(f"gradient {before:.1f}, used {weight.grad.item():.1f}, weight is now {weight.item():.2f}")
