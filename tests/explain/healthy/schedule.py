"""Two groups of parameters, a schedule, label smoothing, and a mean that follows."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.SiLU(), torch.nn.Linear(8, 3))
groups = [{"params": model[0].parameters(), "lr": 0.01}, {"params": model[2].parameters()}]
optimizer = torch.optim.SGD(groups, lr=0.1, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
total = 0.0
for _ in range(4):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(6, 4)), torch.randint(0, 3, (6,)), label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    scheduler.step()
    total += loss.item()
