"""A Hessian beside a training step: what functional detaches within itself is not cut off by mistake."""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(2, 3)).square().mean()
loss.backward()
optimizer.step()
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
hessian = torch.autograd.functional.hessian(lambda v: (v**3).sum(), w)
print(hessian.trace())
