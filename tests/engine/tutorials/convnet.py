"""A small convolutional net on pictures of crosses and squares."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def picture(kind, place):
    canvas = torch.zeros(1, 12, 12)
    row, column = 2 + place % 4, 2 + place // 4 % 4
    if kind:
        canvas[0, row : row + 6, column] = canvas[0, row : row + 6, column + 5] = 1.0
        canvas[0, row, column : column + 6] = canvas[0, row + 5, column : column + 6] = 1.0
    else:
        canvas[0, row + 3, column : column + 6] = 1.0
        canvas[0, row : row + 6, column + 3] = 1.0
    return canvas + torch.sin(torch.arange(144.0) * (place + 1)).view(1, 12, 12) * 0.1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.conv2 = nn.Conv2d(4, 6, 3, padding=1)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(6 * 2 * 2, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc2(F.relu(self.fc1(x)))


net = Net()
with torch.no_grad():
    for number, parameter in enumerate(net.parameters()):
        parameter.copy_((torch.cos(torch.arange(parameter.numel()) * 2.3 + number) * 0.4).view_as(parameter))
print(net)
print([(name, tuple(parameter.size())) for name, parameter in net.named_parameters()])
inputs = torch.stack([picture(number % 2, number // 2) for number in range(32)])
labels = torch.arange(32) % 2
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    optimizer.zero_grad()
    outputs = net(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    _, predicted = torch.max(outputs, 1)
    print(f"[{epoch + 1}] loss: {loss.item():.4f} right: {(predicted == labels).sum().item()}")
print(net.conv1.bias.grad.shape, outputs.grad_fn.name(), loss.grad_fn.next_functions[0][0].name())
