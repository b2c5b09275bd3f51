"""A forward that ran in inference_mode."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
with torch.inference_mode():
    out = model(torch.ones(2, 3))  # cause
    loss = out.pow(2).mean()
loss.backward()
