import torch

x = torch.tensor([[1.0, 2], [3, 4]], requires_grad=True)
s = 0
for row in x:
    s = s + (row * row).sum()
s.backward()
