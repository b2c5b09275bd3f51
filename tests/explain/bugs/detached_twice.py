"""A discriminator rightly sees a detached sample, and so does the generator's own loss, by mistake."""

import torch

torch.manual_seed(0)
generator = torch.nn.Linear(2, 2)
critic = torch.nn.Linear(2, 1)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
for _ in range(2):
    fake = generator(torch.ones(3, 2))
    of_critic.zero_grad()
    critic(fake.detach()).mean().backward()
    of_critic.step()
    of_generator.zero_grad()
    (-critic(fake.detach()).mean()).backward()  # cause
    of_generator.step()
