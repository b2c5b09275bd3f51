"""Attention whose mask is the logarithm of ones and zeros, as PyTorch's example of a word language model makes it."""

import torch

torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(4, 4))
optimizer = torch.optim.SGD([w], lr=0.1)
mask = torch.log(torch.tril(torch.ones(4, 4)))
for _ in range(2):
    scores = torch.softmax(w + mask, 1)
    loss = (scores @ torch.randn(4, 1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
