import torch

w = torch.tensor([3.0, 4.0], requires_grad=True)
scale = torch.zeros(1, requires_grad=True)
loss = (w * w).sum() + (torch.sqrt(scale) * scale).sum()  # cause
loss.backward()
torch.nn.utils.clip_grad_norm_([w, scale], 1.0)
