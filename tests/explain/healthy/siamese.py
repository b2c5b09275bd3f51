"""Two pictures compared by one net, whose biases a normalization makes idle; and a triplet on the side."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
        self.fc = nn.Sequential(nn.Linear(16, 8), nn.ReLU(inplace=True), nn.Linear(8, 1))
        self.sigmoid = nn.Sigmoid()

    def forward(self, a, b):
        return self.sigmoid(self.fc(torch.cat((self.body(a), self.body(b)), 1)))


torch.manual_seed(0)
model = Siamese()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
criterion = nn.BCELoss()
for _ in range(4):
    a, b, y = torch.randn(6, 8), torch.randn(6, 8), torch.randint(0, 2, (6,)).float()
    optimizer.zero_grad()
    loss = criterion(model(a, b).squeeze(), y)
    loss.backward()
    optimizer.step()
    # a triplet on the side
    anchor, positive, negative = (F.normalize(model.body(x)) for x in (a, b, torch.randn(6, 8)))
    optimizer.zero_grad()
    F.relu((anchor - positive).pow(2).sum(1) - (anchor - negative).pow(2).sum(1) + 0.5).mean().backward()
    optimizer.step()
