"""Actor and critic as in the reinforcement examples: actions are drawn, rewards come later, two losses are summed."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.action_head, self.value_head = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


torch.manual_seed(3)
model = Policy()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
for _ in range(3):
    state, saved, rewards = torch.randn(4), [], []
    for t in range(6):
        probs, value = model(state)
        action = torch.multinomial(probs, 1)
        saved.append((torch.log(probs[action]), value))
        rewards.append(1.0 if action.item() == t % 2 else 0.0)
        state = state + 0.1 * torch.randn(4)
    R, returns = 0, []
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(saved, returns, strict=True):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
