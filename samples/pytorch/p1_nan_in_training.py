"""A nan in a training loop

The loss is the length of the weight. It falls from 2 to 1 to 0, and then it
is nan, as every weight is. Press c: it stops at the first number that is not
one. In forward all is well, sqrt(0) is 0. But the rule of sqrt divides by
2 * sqrt(0), which makes inf, and inf times the 0 that comes next is nan. One
step of the optimizer carries it into the weight. S goes back to how it came
about. In the second half sqrt gets a little more than 0, and nothing breaks.
"""

import torch


def train(slack):
    weight = torch.tensor([2.0, 0.0], requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    for _ in range(4):
        loss = torch.sqrt((weight * weight).sum() + slack)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss = {loss.item():.2f}  weight = {[round(w, 2) for w in weight.tolist()]}")


train(slack=0.0)
train(slack=0.01)
