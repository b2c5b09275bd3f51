"""Two nets trained against each other."""

import torch
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
judge = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
maker_steps, judge_steps = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
loss = nn.BCEWithLogitsLoss()
for _ in range(3):
    real, noise = torch.randn(8, 2), torch.randn(8, 2)
    fake = maker(noise)
    judge_steps.zero_grad()
    (loss(judge(real), torch.ones(8, 1)) + loss(judge(fake.detach()), torch.zeros(8, 1))).backward()
    judge_steps.step()
    maker_steps.zero_grad()
    loss(judge(fake), torch.ones(8, 1)).backward()
    maker_steps.step()
