"""An autoencoder whose decoder is the encoder, transposed."""

import torch

torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(3, 6) * 0.3)
optimizer = torch.optim.Adam([w])
for _ in range(4):
    x = torch.randn(8, 6)
    code = torch.relu(x @ w.t())
    loss = torch.nn.functional.mse_loss(code @ w, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
