import torch

w = torch.tensor([3.0, 4.0], requires_grad=True)
v = torch.tensor([3.0, 4.0], requires_grad=True)
u = torch.tensor([3.0, 4.0], requires_grad=True)
for p in (w, v, u):
    (p * p).sum().backward()
torch.nn.utils.clip_grad_norm_([w], 5.0)
torch.nn.utils.clip_grad_value_([v], 7.0)
u.grad /= 4
u.grad = u.grad + 1
