import torch

torch.manual_seed(0)
w = torch.randn(8, 4, requires_grad=True)
x = torch.randn(512, 8) * 0.01
h = x.half() @ w.half()
loss = (h * 0.02).pow(2).mean()  # cause
loss.backward()
