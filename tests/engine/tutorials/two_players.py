"""Two networks against one another on one-dimensional data, each with its optimizer; state saved, restored, scheduled."""

import copy

import torch
import torch.nn as nn


def filled(module, seed):
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            values = torch.cos(torch.arange(parameter.numel(), dtype=torch.float64) * 1.9 + number + seed) * 0.5
            parameter.copy_(values.view_as(parameter))
    return module


real = 3 + 0.5 * torch.sin(torch.arange(16.0)).view(16, 1)
noise = torch.cos(torch.arange(16.0) * 2.7).view(16, 1)
generator = filled(nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)), 1)
critic = filled(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid()), 2)
loss_fn = nn.BCELoss()
for_generator = torch.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.999))
for_critic = torch.optim.Adam(critic.parameters(), lr=0.01, betas=(0.5, 0.999))
scheduler = torch.optim.lr_scheduler.StepLR(for_generator, step_size=5, gamma=0.5)

for step in range(12):
    for_critic.zero_grad()
    fake = generator(noise)
    loss_critic = loss_fn(critic(real), torch.ones(16, 1)) + loss_fn(critic(fake.detach()), torch.zeros(16, 1))
    loss_critic.backward()
    for_critic.step()
    for_generator.zero_grad()
    loss_generator = loss_fn(critic(fake), torch.ones(16, 1))
    loss_generator.backward()
    for_generator.step()
    scheduler.step()
    if step % 4 == 0:
        print(step, f"{loss_critic.item():.4f} {loss_generator.item():.4f}", scheduler.get_last_lr())

saved = copy.deepcopy(generator.state_dict())
print({name: tuple(value.shape) for name, value in saved.items()}, list(for_generator.state_dict()))
filled(generator, 7)
print(generator.load_state_dict(saved), f"{generator(noise).mean().item():.4f}")
