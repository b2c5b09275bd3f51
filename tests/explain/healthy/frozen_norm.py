"""A head is trained on a backbone that stays as it is, and a model whose normalization alone is frozen."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).eval().requires_grad_(False)
head = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
whole = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
whole[1].eval()
x, y = torch.randn(8, 3), torch.randn(8, 1)
for model, parameters in ((nn.Sequential(backbone, head), head.parameters()), (whole, whole.parameters())):
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
