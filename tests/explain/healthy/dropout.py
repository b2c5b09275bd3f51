"""Dropout in training, and none in evaluation."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model.train()
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        print(model(x).mean().item())
