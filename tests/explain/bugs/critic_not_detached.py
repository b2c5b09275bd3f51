"""A critic's loss that goes back into the generator, whose own loss needs it afterwards."""

import torch


def layer(*sizes):
    return torch.nn.Sequential(torch.nn.Linear(*sizes), torch.nn.Tanh())


torch.manual_seed(0)
generator, critic = layer(2, 3), layer(3, 1)
critic(torch.randn(4, 3)).mean().backward()
fake = generator(torch.randn(4, 2))
critic(fake).mean().backward()  # cause
critic(fake).neg().mean().backward()
