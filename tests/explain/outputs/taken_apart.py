import torch

x = torch.arange(6.0, requires_grad=True)
p, q = x.split(4)
first = x.chunk(2)[0]
y = (p * 2).sum() + (q * 3).sum() + first.sum()
y.backward()
