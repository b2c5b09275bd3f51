"""The cubic as a linear layer on powers of x, and then with an optimizer."""

import math

import torch

x = torch.linspace(-math.pi, math.pi, 400)
y = torch.sin(x)
powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
print(powers.shape, powers.dtype, powers[0])


def model_of(bias, weights):
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    with torch.no_grad():
        model[0].bias.fill_(bias)
        model[0].weight.copy_(torch.tensor([weights]))
    return model


model, loss_fn = model_of(0.1, [0.2, 0.0, -0.1]), torch.nn.MSELoss(reduction="sum")
print(model)
for step in range(100):
    loss = loss_fn(model(powers), y)
    if step % 25 == 24:
        print(step, f"{loss.item():.2f}")
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-6 * parameter.grad

model = model_of(0.1, [0.2, 0.0, -0.1])
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for _ in range(100):
    loss = loss_fn(model(powers), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
linear = model[0]
print(f"y = {linear.bias.item():.3f} + {linear.weight[:, 0].item():.3f} x + {linear.weight[:, 2].item():.3f} x^3")
