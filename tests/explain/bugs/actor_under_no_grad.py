"""All that one of two optimizers has is used under no_grad, so that it never finds a gradient."""

import torch

torch.manual_seed(0)
actor, critic = torch.nn.Linear(2, 1), torch.nn.Linear(1, 1)
of_actor = torch.optim.SGD(actor.parameters(), lr=0.1)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
x = torch.ones(3, 2)
for _ in range(2):
    with torch.no_grad():
        action = actor(x)  # cause
    loss = -critic(action).mean()
    of_critic.zero_grad()
    of_actor.zero_grad()
    loss.backward()
    of_critic.step()
    of_actor.step()
