import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))
judge = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
of_net = torch.optim.SGD(net.parameters(), 0.1)
of_judge = torch.optim.Adam(judge.parameters(), 0.1)
for _ in range(2):
    score = judge(net(torch.randn(8, 2)))
    loss = score.mean() - judge(torch.randn(8, 2)).mean()
    of_judge.zero_grad()
    loss.backward(retain_graph=True)
    of_judge.step()  # cause
    of_net.zero_grad()
    (-score.mean()).backward()
    of_net.step()
