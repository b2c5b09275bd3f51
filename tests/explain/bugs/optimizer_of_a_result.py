"""An image to be learned that was moved after it had become a leaf."""

import torch

content = torch.tensor([1.0, 2.0])
image = content.requires_grad_().clone()  # cause
optimizer = torch.optim.SGD([image], lr=0.1)
