"""A variational autoencoder: two losses, noise, and exp of a logarithm."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for _ in range(3):
    x = torch.rand(8, 6)
    mean, logvar = encoder(x).chunk(2, 1)
    z = mean + torch.randn(8, 2) * (0.5 * logvar).exp()
    rebuilt = nn.functional.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
    divergence = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum()
    optimizer.zero_grad()
    (rebuilt + divergence).backward()
    optimizer.step()
