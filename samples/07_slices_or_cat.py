"""Slice by slice or one cat: the same numbers at very different cost

Both halves put three rows into y and sum them. Each y[i] = x is a box of its
own, and the next one builds on it: a chain. Walk back through it with n. All
three get the whole 3x4 gradient, and what they hand on is a copy of it in
which one row is now 0: 12 elements arrive three times, 36 in all. torch.cat
is one box. It gets the 12 elements once and hands every row its 4. The hook
counts them. With 100 rows instead of 3 it is 100 times as much, which is why
the second form is the one to use.
"""

import gviz.engine as torch

arrived = 0


def count(gradient):
    global arrived
    arrived += gradient.numel()


y = torch.empty(3, 4)
for i in range(3):
    x = torch.ones(4, requires_grad=True)
    y[i] = x
    y.register_hook(count)
z = y.sum()
z.backward()
print(f"slice by slice: z = {z.item():.0f}  elements = {arrived}")

arrived = 0
rows = []
for i in range(3):
    x = torch.ones(1, 4, requires_grad=True)
    rows.append(x)
y = torch.cat(rows, dim=0)
y.register_hook(count)
z = y.sum()
z.backward()
print(f"one cat: z = {z.item():.0f}  elements = {arrived}")
