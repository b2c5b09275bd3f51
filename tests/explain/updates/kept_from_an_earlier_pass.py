import torch

w = torch.tensor([0.0, 4.0], requires_grad=True)
torch.sqrt(w).sum().backward()
(w * 2).sum().backward()
