"""A forward that ran inside no_grad."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
with torch.no_grad():
    out = model(torch.ones(2, 3))  # cause
loss = out.pow(2).mean()
loss.backward()
