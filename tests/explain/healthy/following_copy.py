"""Values learned against a slowly following copy, which is only used under no_grad."""

import copy

import torch

torch.manual_seed(0)
q = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters())
for _ in range(4):
    state, following, action = torch.randn(8, 4), torch.randn(8, 4), torch.randint(0, 2, (8, 1))
    with torch.no_grad():
        goal = 1.0 + 0.9 * target(following).max(1, keepdim=True).values
    loss = torch.nn.functional.smooth_l1_loss(q(state).gather(1, action), goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(target.parameters(), q.parameters(), strict=True):
            old.mul_(0.9).add_(new, alpha=0.1)
