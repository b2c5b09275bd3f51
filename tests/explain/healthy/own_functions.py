"""Functions of one's own: with right rules, also at a kink and given a tensor twice, and with rules meant to differ."""

import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return g * (s + x * s * (1 - s))


class Ramp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > 0)


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x.abs()) ** 2


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -0.1 * g


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-0.01, 0.01)


class Stepped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, size):
        ctx.save_for_backward(x, size)
        return torch.round(x / size) * size

    @staticmethod
    def backward(ctx, g):
        x, size = ctx.saved_tensors
        return g, (g * (torch.round(x / size) - x / size)).sum()


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


torch.manual_seed(0)
w = torch.tensor([0.3, 0.0, -1.2], requires_grad=True)
size = torch.tensor(0.25, requires_grad=True)
optimizer = torch.optim.SGD([w, size], lr=0.01)
for _ in range(3):
    h = w * 2
    loss = (Swish.apply(h) + Ramp.apply(h) + Spike.apply(h)).pow(2).sum()
    loss = loss + Reversed.apply(h).exp().sum() + Clipped.apply(h * h).sum()
    loss = loss + Stepped.apply(h, size).pow(2).sum() + Product.apply(h, h).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
