"""In place: a write that spoils what backward needs, and clone against it

s[0] is no copy, it looks into the memory of s. The product keeps it for its
backward rule and notes the version of that memory: 0. Then s[1] = ... writes
into the same memory: version 1. That it was another element does not matter,
all of s has one version. Press f until the first backward pass ends. It gets
as far as the product, whose rule asks for version 0, and fails; the error is
caught and printed here. In the second half clone() gives the product memory
of its own, which nobody writes to, and x.grad becomes s[0] = 1.
"""

import gviz.engine as torch

x = torch.tensor(3.0, requires_grad=True)
s = torch.ones(2)
s[1] = s[0] * x
z = s.sum()
try:
    z.backward()
except RuntimeError as error:
    print(error)

x = torch.tensor(3.0, requires_grad=True)
s = torch.ones(2)
s[1] = s[0].clone() * x
z = s.sum()
z.backward()
print(f"z = {z.item():.0f}  x.grad = {x.grad.item():.0f}")
