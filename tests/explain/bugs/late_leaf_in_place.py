"""A copy that becomes a leaf, and is brought back between its borders."""

import torch

content = torch.tensor([1.0, 2.0])
image = content.clone().requires_grad_(True)
(image * image).sum().backward()
image.clamp_(0, 1)  # cause
