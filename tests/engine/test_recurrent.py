"""Recurrent cells and layers beside PyTorch."""

import pytest
from twin import compare

import gviz.engine as torch

BEGIN = """
import numpy as np
def data(*shape, seed=0):
    numbers = np.random.default_rng(seed + len(shape) + sum(shape)).standard_normal(shape)
    return torch.from_numpy(numbers).requires_grad_()
x, h, c = data(3, 4), data(3, 5), data(3, 5, seed=1)
def weights(gates, n=4, m=5, seed=0):
    return [data(gates * m, n, seed=seed), data(gates * m, m, seed=seed), data(gates * m, seed=seed), data(gates * m, seed=seed + 1)]
def tried(found, *tensors):
    for y in found: shown(y)
    total = sum((y * (torch.arange(y.numel()).to(y.dtype) * .7 + .1).cos().reshape(y.shape)).sum() for y in found)
    total.backward()
    numbers(*[t.grad for t in tensors])
"""


@pytest.mark.torch
@pytest.mark.parametrize(("name", "gates"), [("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3)])
def test_cells(name, gates):
    program = f"shown = see\nw = weights({gates})\ntried([torch.{name}(x, h, *w)], x, h, *w)\nattempt(lambda: torch.{name}(x[0], h[0], *w))"
    compare(BEGIN + program, rtol=1e-8)


@pytest.mark.torch
def test_lstm_cells():
    compare(BEGIN + "shown = see\nw = weights(4)\ntried(torch.lstm_cell(x, (h, c), *w), x, h, c, *w)", rtol=1e-8)


@pytest.mark.torch
@pytest.mark.parametrize(
    "call",
    [
        "torch.rnn_tanh(s, z, w, True, 1, 0., False, False, False)",
        "torch.rnn_relu(s, z, w, True, 1, 0., False, False, False)",
        "torch.gru(s, z, weights(3), True, 1, 0., False, False, False)",
        "torch.gru(s.transpose(0, 1), z, weights(3), True, 1, 0., False, False, True)",
        "torch.gru(s, z, weights(3)[:2], False, 1, 0., False, False, False)",
        "torch.gru(s, torch.cat([z, z, z, z]), [*weights(3), *weights(3, seed=3), *weights(3, 10, seed=5), *weights(3, 10, seed=6)], True, 2, 0., False, True, False)",
        "torch.lstm(s, (z, z + 1), weights(4), True, 1, 0., False, False, False)",
        "torch.lstm(s, (torch.cat([z, z]), torch.cat([z, z])), [*weights(4), *weights(4, 5, seed=3)], True, 2, 0., True, False, False)",
        "torch.lstm(s, (torch.cat([z, z]), torch.cat([z, z])), [*weights(4), *weights(4, seed=3)], True, 1, 0., False, True, False)",
    ],
)
def test_layers(call):
    program = f"shown = numbers\ns, z, w = data(6, 3, 4), data(1, 3, 5), weights(1)\ntried({call}, s, z)"
    compare(BEGIN + program, rtol=1e-8)


@pytest.mark.torch
@pytest.mark.parametrize("call", ["x[:, :3], h", "x, h[:, :2]", "x, h[:2]"])
def test_sizes_that_do_not_fit(call):
    compare(f"{BEGIN}\nw = weights(3)\nattempt(lambda: torch.gru_cell({call}, *w))")


def test_packed_sequences_are_refused():
    state, sizes = torch.zeros(1, 1, 5), torch.tensor([1, 1])
    with pytest.raises(NotImplementedError, match="no packed sequences"):
        torch.lstm(torch.zeros(2, 4), sizes, (state, state), [], True, 1, 0.0, False, False)
