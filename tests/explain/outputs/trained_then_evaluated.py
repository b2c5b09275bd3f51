"""A loop of training, and an evaluation after it that uses the same names."""

import torch

w = torch.tensor([2.0, 3.0], requires_grad=True)
for _ in range(2):
    base = w.detach() * 2
    score = w * base
    if hasattr(torch, "distributions"):
        z = torch.distributions.Normal(w, 1.0).sample()
    score.sum().backward()
    w.grad = None
base = w.detach() * 3
score = w * base
with torch.no_grad():
    z = w + 1
