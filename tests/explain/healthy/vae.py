"""The variational autoencoder of the examples: reparametrized samples, a summed loss, reconstructions at the end."""

import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(20, 12), nn.Linear(12, 3), nn.Linear(12, 3)
        self.fc3, self.fc4 = nn.Linear(3, 12), nn.Linear(12, 20)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


torch.manual_seed(0)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for _ in range(6):
    data = torch.rand(8, 20)
    optimizer.zero_grad()
    recon, mu, logvar = model(data)
    bce = F.binary_cross_entropy(recon, data, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    loss = bce + kld
    loss.backward()
    optimizer.step()
    losses.append(loss.item() / len(data))
with torch.no_grad():
    print(model.decode(torch.randn(2, 3)).shape, sum(losses) / len(losses))
