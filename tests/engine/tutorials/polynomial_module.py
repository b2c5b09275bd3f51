"""Polynomials as modules: of fixed degree, and of a degree that changes from call to call with weights shared."""

import torch
from torch import nn


class Polynomial3(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(0.3))
        self.b = nn.Parameter(torch.tensor(-0.2))
        self.c = nn.Parameter(torch.tensor(0.1))
        self.d = nn.Parameter(torch.tensor(0.05))

    def forward(self, x):
        return self.a + self.b * x + self.c * x**2 + self.d * x**3

    def string(self):
        return f"y = {self.a.item():.3f} + {self.b.item():.3f} x + {self.c.item():.3f} x^2 + {self.d.item():.3f} x^3"


class Dynamic(Polynomial3):
    def __init__(self):
        super().__init__()
        self.e = nn.Parameter(torch.tensor(0.01))
        self.calls = 0

    def forward(self, x):
        y = super().forward(x)
        self.calls += 1
        for exponent in range(4, 4 + self.calls % 3):
            y = y + self.e * x**exponent
        return y


x = torch.linspace(-2, 2, 200)
y = torch.sin(x)
for make in (Polynomial3, Dynamic):
    model = make()
    criterion = nn.MSELoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, momentum=0.9)
    for step in range(60):
        loss = criterion(model(x), y)
        if step % 20 == 0:
            print(step, f"{loss.item():.3f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(model, model.string(), [name for name, _ in model.named_parameters()])
