"""With the garbage collector off: when the loss goes, everything goes, however the graph was built and run."""

import weakref

import pytest

import gviz.engine as torch

SIZE = 100_000


pytestmark = pytest.mark.usefixtures("no_collector")


def nodes_behind(*tensors):
    """Weak references to every node the tensors come from."""
    found, stack = {}, [t.grad_fn for t in tensors]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = weakref.ref(node)
            stack.extend(target for target, _ in node.next_functions if target is not None)
    return list(found.values())


def mixed(x, count):
    """A graph of about `count` operations of every kind, with hooks, notes and retained gradients on the way."""
    y, rounds = x * 1, count // 16
    for round_nr in range(rounds):
        a, b = y.view(2, 2).unbind()
        y = torch.cat([a.exp(), b.sigmoid()]) * 0.5
        y.mul_(x)
        y[:1].exp_()
        y = y.view(4)
        values, _ = y.view(2, 2).max(0)
        y = y + values.sum() * 0.1
        if round_nr % 50 == 0:
            y.retain_grad()
            y.register_hook(lambda g: g * 1)
            y.grad_fn.register_prehook(lambda grads: grads)
            y.grad_fn.register_hook(lambda ins, outs: ins)
            y.grad_fn.metadata["round"] = round_nr
    return y.sum()


@pytest.mark.parametrize(("how", "size"), [("backward", SIZE), ("unused", SIZE // 10), ("retained", SIZE // 10)])
def test_a_graph_of_100_000_operations_goes_with_its_loss(how, size):
    x = torch.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
    loss = mixed(x, size)
    if how != "unused":
        loss.backward(retain_graph=how == "retained")
    nodes = nodes_behind(loss)
    assert len(nodes) > size * 0.8
    del loss
    assert not any(node() for node in nodes)


def double(x):
    (g,) = torch.autograd.grad(mixed(x, 200), x, create_graph=True)
    return g.sum()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        _, y = ctx.saved_tensors
        return g * y


def packed(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        return mixed(x, 200)


def on_cpu(x):
    with torch.autograd.graph.save_on_cpu():
        return mixed(x, 200)


def packed_one_by_one(x):
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    return y.sum()


def in_anomaly_mode(x):
    with torch.autograd.set_detect_anomaly(True):
        return mixed(x, 200)


def second_order_in_anomaly_mode(x):
    with torch.autograd.set_detect_anomaly(True):
        return double(x)


def watched_by_several(x):
    y = x * 2
    z = y.exp()
    torch.autograd.graph.register_multi_grad_hook((y, z), lambda grads: None)
    torch.autograd.graph.register_multi_grad_hook((y, z), lambda grad: None, mode="any")
    return z.sum()


BUILDS = [
    double, packed, on_cpu, packed_one_by_one, in_anomaly_mode, second_order_in_anomaly_mode, watched_by_several,
    lambda x: Scaled.apply(Scaled.apply(x)).sum(), lambda x: (x * 1)[1:].sigmoid_().sum(), lambda x: mixed(x, 200),
]  # fmt: skip


@pytest.mark.parametrize("how", ["unused", "backward", "twice", "second order", "failed"])
@pytest.mark.parametrize("build", BUILDS, ids=[getattr(b, "__name__", "") for b in BUILDS])
def test_every_kind_of_graph_goes_with_its_loss(build, how):
    x = torch.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
    loss = build(x)
    nodes = nodes_behind(loss)
    run(loss, x, how)
    x.grad = None
    del loss
    assert not any(node() for node in nodes)


def run(loss, x, how):
    if how == "failed":
        x.register_hook(lambda g: g.nothing)
        with pytest.raises(AttributeError):
            loss.backward()
    elif how == "second order":
        (g,) = torch.autograd.grad(loss, x, create_graph=True)
        if g.requires_grad:
            g.sum().backward()
    elif how != "unused":
        loss.backward(retain_graph=how == "twice")
        if how == "twice":
            loss.backward()


def test_hooks_of_a_leaf_keep_no_graph():
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda g: g * 1)
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    y = x.exp().sum()
    nodes = nodes_behind(y)
    y.backward()
    del y
    assert not any(node() for node in nodes)
