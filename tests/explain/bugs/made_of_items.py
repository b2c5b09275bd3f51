"""The loss of a policy made of numbers, which requires_grad=True does not give their history back."""

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
chances = torch.softmax(w, dim=0)
gains = [torch.log(chances[0]).item(), torch.log(chances[1]).item()]
loss = -torch.tensor(gains, requires_grad=True).sum()  # cause
loss.backward()
