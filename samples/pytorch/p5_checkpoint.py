"""What gradient checkpointing does

The block is a chain of three operations, whose results backward needs. Under
checkpoint none of them is kept: when the backward pass comes to the block it
runs it once more. Watch for it: in the middle of the second pass new nodes
appear, made during a backward step, and die again at once. The gradients are
the same; what was saved in memory was paid for in time.
"""

import torch
from torch.utils.checkpoint import checkpoint


def block(x):
    return torch.sin(torch.exp(x * 0.5))


for how in (block, lambda x: checkpoint(block, x, use_reentrant=False)):
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    how(x).sum().backward()
    print(f"x.grad = {[round(g, 4) for g in x.grad.tolist()]}")
