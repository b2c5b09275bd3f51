"""A training loop that forgets zero_grad, and one that does not

Both loops move w towards 4, half of the way at each step: 2, 3, 3.5 are
right. In the first one w.grad still holds the -8 of the first step when
the second backward brings -4: press f until w.grad is -12, then e, which
takes it apart. The optimizer goes by that, w comes to 5, and at the next
step to 7.5: it swings past 4, as if the learning rate were too large.
gviz check finds it in the recording of any loop, and names the backward
that added. The second loop clears the gradients first.
"""

import gviz.engine as torch


def train(*, clear):
    w = torch.tensor(0.0, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.25)
    for _ in range(3):
        if clear:
            optimizer.zero_grad()
        loss = (w - 4) ** 2
        loss.backward()
        optimizer.step()
        print(f"w.grad = {w.grad.item():.0f}  w = {w.item():.1f}")


train(clear=False)
train(clear=True)
