"""A function of one's own whose backward has lost a factor."""

import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x**2  # cause


w = torch.tensor([1.0, 2.0, -1.5], requires_grad=True)
h = w * 2
loss = Cube.apply(h).sum()
loss.backward()
