"""A long short-term memory that continues a sine."""

import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
wave = torch.stack([torch.sin(torch.arange(30) / 4 + phase) for phase in range(4)])
inputs, targets = wave[:, :-1], wave[:, 1:]


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 8)
        self.lstm2 = nn.LSTMCell(8, 8)
        self.linear = nn.Linear(8, 1)

    def forward(self, series, future=0):
        outputs = []
        h1, c1, h2, c2 = (torch.zeros(series.size(0), 8) for _ in range(4))
        steps = list(series.split(1, dim=1))
        for number in range(len(steps) + future):
            value = steps[number] if number < len(steps) else outputs[-1]
            h1, c1 = self.lstm1(value, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            outputs.append(self.linear(h2))
        return torch.cat(outputs, dim=1)


model = Sequence()
with torch.no_grad():
    for number, parameter in enumerate(model.parameters()):
        parameter.copy_((torch.sin(torch.arange(parameter.numel()) * 1.1 + number) * 0.3).view_as(parameter))
print(model)
criterion, optimizer = nn.MSELoss(), torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(10):
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        print("loss:", round(loss.item(), 6))
with torch.no_grad():
    print(model(inputs, future=5).shape, model(inputs, future=5)[0, -5:].numpy().round(5))
torch.set_default_dtype(torch.float32)
