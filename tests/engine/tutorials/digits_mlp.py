"""Pictures of made-up digits told apart by a small network: Dataset, DataLoader, module, training and test loops."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Stripes(Dataset):
    """8x8 pictures with a bright row: the label is its number."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 8, count)
        self.pictures = rng.random((count, 8, 8)).astype(np.float32)
        self.pictures[np.arange(count), self.labels] += 0.7

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.pictures[index]), torch.tensor(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.layers = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x):
        return self.layers(self.flatten(x))


def train(loader, model, loss_fn, optimizer):
    model.train()
    for batch, (X, y) in enumerate(loader):
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 4 == 0:
            print(f"loss: {loss.item():.4f} [{(batch + 1) * len(X):>4d}/{len(loader.dataset):>4d}]")


def test(loader, model):
    model.eval()
    loss, correct = 0.0, 0.0
    with torch.no_grad():
        for X, y in loader:
            prediction = model(X)
            loss += F.cross_entropy(prediction, y).item()
            correct += (prediction.argmax(1) == y).type(torch.float).sum().item()
    print(f"Accuracy: {100 * correct / len(loader.dataset):>0.1f}%, Avg loss: {loss / len(loader):>8f}")


model = Net().to("cpu")
rng = np.random.default_rng(0)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.copy_(torch.from_numpy(rng.normal(0, 0.2, tuple(parameter.shape)).astype(np.float32)))
print(model, sum(p.numel() for p in model.parameters()))
train_loader, test_loader = DataLoader(Stripes(256, 1), batch_size=32), DataLoader(Stripes(64, 2), batch_size=64)
for X, y in test_loader:
    print(f"Shape of X: {X.shape}", f"Shape of y: {y.shape} {y.dtype}")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    print(f"Epoch {epoch + 1}")
    train(train_loader, model, nn.CrossEntropyLoss(), optimizer)
    test(test_loader, model)
