import torch

w = torch.tensor([1.0, 0.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = torch.sqrt(w).sum()
    loss.backward()
    optimizer.step()
