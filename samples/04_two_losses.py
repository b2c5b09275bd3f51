"""Two losses on one graph: retain_graph, and the error when it is missing

d and e share the graph from a to c. The first two passes keep it, and a.grad
grows from a to 5 * a, because every pass adds to it. The third one does not:
watch with s how c and b release what they had saved for backward. So the
fourth pass comes as far as c, which has nothing left to compute with, and is
refused. This error ends the program on purpose, so the debugger opens on it:
go back with N or C, or to the first event with <, and come again with c.
"""

import gviz.engine as torch

a = torch.tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
b = a**2
c = b * 2
d = c.mean()
e = c.sum()

d.backward(retain_graph=True)  # fine
print(a.grad.tolist())
e.backward(retain_graph=True)  # fine
print(a.grad.tolist())
d.backward()  # also fine
print(a.grad.tolist())
e.backward()  # error
