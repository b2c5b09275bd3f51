"""Words of sentences of several lengths: padding gets no gradient, and is masked out of the mean."""

import torch

torch.manual_seed(0)
words, head = torch.nn.Embedding(9, 4, padding_idx=0), torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam([*words.parameters(), *head.parameters()])
for _ in range(3):
    tokens = torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0]])
    mask = (tokens != 0).float().unsqueeze(-1)
    mean = (words(tokens) * mask).sum(1) / mask.sum(1)
    loss = torch.nn.functional.cross_entropy(head(mean), torch.tensor([0, 1]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
