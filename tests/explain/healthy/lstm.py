"""An LSTM over whole sequences."""

import torch

torch.manual_seed(0)
lstm, head = torch.nn.LSTM(3, 5, batch_first=True), torch.nn.Linear(5, 2)
optimizer = torch.optim.RMSprop([*lstm.parameters(), *head.parameters()])
for _ in range(2):
    out, _ = lstm(torch.randn(4, 6, 3))
    loss = torch.nn.functional.cross_entropy(head(out[:, -1]), torch.randint(0, 2, (4,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
