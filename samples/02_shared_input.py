"""A shared input: gradients that meet are added, in two different places

Two operations use x, and two use a. In the first backward pass watch with s
how a waits: 1 arrives from loss, "1 of 2", then 3 from b, and only now, with
4, does its rule run. x collects -6 from b and -8 from a: x.grad is -14. This
adding happens within one pass. The second iteration builds the same graph and
computes the same -14, but .grad still holds the first one: the new part is
added to it, and x.grad is -28. This adding happens across passes, and it is
why a training loop clears the gradients.
"""

import gviz.engine as torch

x = torch.tensor(3.0, requires_grad=True)
w = torch.tensor(-2.0, requires_grad=True)

for _ in range(2):
    a = x * w
    b = x * a
    loss = b + a
    loss.backward()
    print(f"loss = {loss.item():.0f}  x.grad = {x.grad.item():.0f}  w.grad = {w.grad.item():.0f}")
