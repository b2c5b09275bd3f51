"""The handler of a signal computes with tensors too, whatever operation it came into."""

import signal

import numpy as np
import pytest

import gviz.engine as torch
from gviz.engine.modes import thread


def during_an_operation(compute):
    """What `compute` gives in the handler of a signal that comes while an operation runs."""
    got = []
    before = signal.signal(signal.SIGINT, lambda *_: got.append(compute()))
    try:
        thread.run_quietly(signal.raise_signal, signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    return got[0]


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: torch.ones(1) + 1, [2]),
        (lambda: torch.ones(1) / 0, [np.inf]),
        (lambda: torch.ones(2).softmax(0), [0.5, 0.5]),
        (lambda: torch.zeros(1).add_(2.5), [2.5]),
        (lambda: torch.tensor([1.5]).long(), [1]),
        (lambda: torch.logspace(0, 1, 2), [1, 10]),
    ],
)
def test_a_handler_computes(compute, expected):
    assert during_an_operation(compute).tolist() == expected


def test_its_errors_are_as_ever():
    with pytest.raises(RuntimeError, match=r"^The size of tensor a \(2\) must match"):
        during_an_operation(lambda: torch.ones(2) + torch.ones(3))


def test_a_backward_in_it():
    def compute():
        x = torch.ones(2, requires_grad=True)
        (x / 0).sum().backward()
        return x.grad

    assert during_an_operation(compute).tolist() == [np.inf, np.inf]
