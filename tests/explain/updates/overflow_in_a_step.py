import torch

w = torch.tensor([2.0, 1.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=1e38)
for _ in range(2):
    optimizer.zero_grad()
    loss = (w * 100).sum()
    loss.backward()
    optimizer.step()  # cause
