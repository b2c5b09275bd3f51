"""A recurrent net that reads names letter by letter and guesses their language."""

import string

import torch
import torch.nn as nn

LETTERS = string.ascii_letters + " .,;'"
NAMES = {
    "Dutch": ["Aalst", "Jansen", "Vries", "Dijk", "Bakker"],
    "Italian": ["Rossi", "Bianchi", "Romano", "Ricci", "Moretti"],
    "Czech": ["Novak", "Dvorak", "Cerny", "Prochazka", "Kucera"],
}
CATEGORIES = list(NAMES)


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for place, letter in enumerate(line):
        tensor[place][0][LETTERS.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, letter, hidden):
        hidden = torch.tanh(self.i2h(letter) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(len(LETTERS), 16, len(CATEGORIES))
with torch.no_grad():
    for number, parameter in enumerate(rnn.parameters()):
        parameter.copy_((torch.sin(torch.arange(parameter.numel()) * 1.7 + number) * 0.3).view_as(parameter))
print(rnn, line_to_tensor("Jones").size())
criterion = nn.NLLLoss()


def train(category, line):
    rnn.zero_grad()
    hidden = rnn.init_hidden()
    for letter in line_to_tensor(line):
        output, hidden = rnn(letter, hidden)
    loss = criterion(output, torch.tensor([CATEGORIES.index(category)], dtype=torch.long))
    loss.backward()
    for parameter in rnn.parameters():
        parameter.data.add_(parameter.grad.data, alpha=-0.05)
    return output, loss.item()


for epoch in range(6):
    total, right = 0.0, 0
    for category in CATEGORIES:
        for name in NAMES[category]:
            output, loss = train(category, name)
            total += loss
            top_value, top_index = output.topk(1)
            right += CATEGORIES[top_index[0].item()] == category
    print(epoch, f"{total:.3f}", right)
with torch.no_grad():
    hidden = rnn.init_hidden()
    for letter in line_to_tensor("Novotny"):
        output, hidden = rnn(letter, hidden)
    for value, index in zip(*[column[0].tolist() for column in output.topk(3, 1, True)], strict=True):
        print(f"({value:.2f}) {CATEGORIES[index]}")
