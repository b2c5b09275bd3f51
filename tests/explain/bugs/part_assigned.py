"""A part of a tensor is assigned what another part of it was used for."""

import torch

w = torch.tensor(1.0, requires_grad=True)
s = torch.ones(2)
s[1] = s[0] * w  # cause
s.sum().backward()
