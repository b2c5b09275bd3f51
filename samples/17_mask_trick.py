"""The mask trick: sizes that depend on data, and the same result without them

arrange puts the positive elements first. Its x[x > 0] has as many elements as
the data say: two for the first input, one for the second, so the boxes of the
two runs have other shapes and the second graph is another graph. arrange_fixed
sorts the mask instead, in a stable order: False comes before True, so those
that are not in the mask come first, in the order they had. Every box keeps its
shape, and this one can be traced or captured. See it from outside with
  gviz graphify samples/17_mask_trick.py
"""

import gviz.engine as torch


def arrange(x):
    return torch.cat([x[x > 0], x[x <= 0]])


def arrange_fixed(x):
    mask = x <= 0
    order = torch.argsort(mask, stable=True)
    return x[order]


w = torch.tensor([1.0, 10.0, 100.0])

for values in ([0.5, -2.0, 3.0], [-1.0, -2.0, 3.0]):
    x = torch.tensor(values, requires_grad=True)
    y = arrange(x)
    fixed = arrange_fixed(x)
    print(f"{values} -> {y.tolist()}, without sizes that depend on data {fixed.tolist()}")
    loss = (fixed * w).sum()
    loss.backward()
    print(f"  x.grad = {x.grad.tolist()}: each element has the weight of the place it went to")
