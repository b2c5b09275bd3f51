"""When nodes die, and that no depth of graph recurses."""

import weakref

import pytest
from heard import Heard

import gviz.engine as torch
from gviz import events as e

pytestmark = pytest.mark.usefixtures("no_collector")


def test_deleting_the_loss_frees_every_node_of_the_graph():
    def program():
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        loss = (y * y + x.sigmoid()).view(3, 1)[0].sum()
        v = loss.grad_fn
        alive.append(weakref.ref(v))
        del y, loss, v
        torch.ones(1)  # what was freed is said before the next event
        return x

    alive = []
    heard = Heard(program)
    assert alive[0]() is None
    ops = {n for n, c in heard.nodes.items() if c.kind == "op"}
    assert ops <= {event.node for event in heard.all(e.NodeFreed)}
    assert not {event.node for event in heard.all(e.NodeFreed)} & set(heard.leaves())


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.exp(), lambda x: (x * 2).add_(1), lambda x: torch.zeros(3).copy_(x), lambda x: (x * 1).sigmoid_(),
        lambda x: torch.cat([x, x]), lambda x: x.unbind()[0], lambda x: (x * 1)[0:2].mul_(3), lambda x: x.max(0)[0],
    ],
    ids=["exp", "add_", "copy_", "sigmoid_", "cat", "unbind", "write through a slice", "max"],
)  # fmt: skip
@pytest.mark.parametrize("how", ["unused", "backward", "retained", "create_graph", "failed"])
def test_nothing_keeps_a_graph_alive(make, how):
    x = torch.ones(3, requires_grad=True)
    y = make(x)
    node = weakref.ref(y.grad_fn)
    if how == "failed":
        y.register_hook(lambda g: g.fail)
        with pytest.raises(AttributeError):
            y.sum().backward()
    elif how != "unused":
        y.sum().backward(retain_graph=how == "retained", create_graph=how == "create_graph")
    x.grad = None
    del y
    assert node() is None


def test_retained_gradients_and_hooks_keep_nothing_alive():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    z = y.exp()
    z.sum().backward()
    nodes = [weakref.ref(t.grad_fn) for t in (y, z)]
    tensors = [weakref.ref(t) for t in (y, z)]
    del y, z
    assert [r() for r in (*nodes, *tensors)] == [None] * 4


LONG = 100_000


def test_a_chain_of_100_000_operations_runs_and_dies():
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(LONG):
        y = y + 1
    first = weakref.ref(y.grad_fn)
    y.backward()
    assert x.grad.item() == 1.0
    del y
    assert first() is None


def test_a_long_chain_that_is_recorded_runs_and_dies():
    def program():
        y = x = torch.tensor(1.0, requires_grad=True)
        for _ in range(20_000):
            y = y * 1.0
        y.backward()
        del y
        torch.ones(1)  # what was freed is said before the next event
        return x

    heard = Heard(program)
    freed = {event.node for event in heard.all(e.NodeFreed)}
    assert {n for n, c in heard.nodes.items() if c.kind == "op"} <= freed
    assert len(heard.all(e.StepFinished)) == 20_000


def test_a_chain_of_views_and_writes_dies():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(5_000):
        y[0].add_(1)
    y.sum().backward()
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None
    assert x.grad.tolist() == [1.0, 1.0]
