"""Vanishing gradients: what is left after eight sigmoids

Eight layers, each sigmoid(weight * h); the weights are #1 to #8. Press f to
the end of the forward pass and go back through the net with n. The gradient
starts at 1, and every sigmoid multiplies it by h * (1 - h), which is never
more than 1/4. The last weight gets 0.15, the first one 0.0000055: it hardly
learns at all. The second net is the same but for relu, which multiplies by 1
wherever its input is positive: all eight weights get the gradient 1.
"""

import gviz.engine as torch


def deep(activation):
    weights = [torch.tensor(1.0, requires_grad=True) for _ in range(8)]
    h = torch.tensor(1.0)
    for weight in weights:
        h = activation(weight * h)
    h.backward()
    print(f"{activation.__name__}: first gradient {weights[0].grad:.2g}, last gradient {weights[-1].grad:.2g}")


deep(torch.sigmoid)
deep(torch.relu)
