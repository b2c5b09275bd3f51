"""Writes that PyTorch keeps no graph node for: the program runs as it does alone, and the trace has what came of it."""

import pytest

from gviz.events import NodeCreated, StorageWritten
from tests.adapters.recorded import events_of, of_kind

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def written(log):
    """What each write left in the memory it was done to, in order."""
    return [event.value.array().tolist() for event in of_kind(log, StorageWritten)]


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w[0].clamp_(0, 0.5),
        lambda w: w.view(-1)[:3].fill_(0.5),
        lambda w: w[0].copy_(torch.full((3,), 0.5)),
        lambda w: w.unbind(0)[0].fill_(0.5),
        lambda w: torch.mul(w[1], 0.5, out=w[0]),
        lambda w: torch._foreach_mul_([w[0]], 0.5),
    ],
)
@pytest.mark.parametrize("with_backward", [True, False])
def test_a_view_made_under_no_grad_is_written_to(write, with_backward):
    def program():
        w = torch.nn.Parameter(torch.ones(2, 3))
        y = (w * 2).sum()
        if with_backward:
            y.backward()
        with torch.no_grad():
            write(w)
        return y, w * 1

    log = events_of(program)
    assert written(log)[-1] == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    assert of_kind(log, NodeCreated)[-1].outputs[0].value.array().tolist() == [[0.5] * 3, [1.0] * 3]


def test_a_view_that_went_stale_is_still_looked_at_and_printed():
    def program():
        w = torch.nn.Parameter(torch.ones(2, 3))
        y = w * 2
        with torch.no_grad():
            view = w[0]
            w.mul_(3)
            view.requires_grad_()
            view.grad = None
            assert view.grad is None
            torch.add(view, 1, out=torch.empty(3))
            return y, view + 1

    log = events_of(program)
    assert [3.0] * 6 in written(log)
