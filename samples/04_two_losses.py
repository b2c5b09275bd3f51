"""Two losses on one graph: retain_graph, and the error when it is missing

d and e share the graph from a to c. Both first passes keep it, and a.grad
grows from a to 5 * a, because every pass adds to it. The third pass does not
keep the graph: watch with s how b and c let go of what they had saved for
backward. So the fourth one gets as far as c, which has nothing left to
compute with, and PyTorch refuses. The error ends this program on purpose:
press c to run to it, and N to see what came before.
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
