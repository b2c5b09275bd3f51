"""A sequence is read and written in reverse order: the target has the numbers of the input, in another order."""

import torch
from torch import nn

F = nn.functional
torch.manual_seed(0)
TOKENS, WIDTH = 12, 16


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(TOKENS, WIDTH)
        self.enc = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, TOKENS)

    def forward(self, words, reverse):
        _, (h, c) = self.enc(self.emb(words))
        h, c = h[0], c[0]
        logits, given = [], torch.zeros(len(words), WIDTH)
        for nr in range(reverse.size(1)):
            h, c = self.cell(given, (h, c))
            logits.append(self.out(h))
            given = self.emb(reverse[:, nr])
        return torch.stack(logits, 1)


net = Reverser()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(5):
    words = torch.randint(0, TOKENS, (80, 4))
    reverse = words.flip(1)
    loss = F.cross_entropy(net(words, reverse).flatten(0, 1), reverse.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    print(step, loss.item())
