"""Two ranks that drift apart

Run it on two processes, each with a trace of its own in one folder:
torchrun --nproc-per-node 2 -m gviz record -o runs/ FILE, and then
gviz open runs/. DistributedDataParallel averages the gradients when a
backward pass ends, so that all ranks take the same step. Here rank 0 takes
care of the printing, and somebody put the clipping into the same block: only
rank 0 clips. Nothing fails, but from the first step on the two models are no
longer the same model. What is opened shows the first gradient that differs.
"""

import os

import torch
import torch.distributed as dist
from torch import nn

if "RANK" in os.environ:
    dist.init_process_group("gloo")
else:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):
    loss = (model(torch.randn(4, 2)) - 3).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if rank == 0:
        print(f"step {step}: loss {loss.item():.2f}")
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
print(f"rank {rank}: bias {model.module.bias.item():.3f}")
dist.destroy_process_group()
