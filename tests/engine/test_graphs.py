"""Capture and replay on fixed buffers: what changes in place, what is refused, and that a whole training step fits."""

import warnings

import numpy as np
import pytest
from recording import events_of

import gviz.engine as torch
from gviz.engine import devices, graphs
from gviz.events import StorageWritten


def captured(function):
    graph = graphs.Graph()
    with graphs.capture(graph):
        result = function()
    return graph, result


def test_outputs_change_in_place():
    w, x = torch.randn(3, 3), torch.randn(3)
    graph, y = captured(lambda: w @ x)
    memory = y.data_ptr()
    for _ in range(2):
        x.copy_(torch.randn(3))
        graph.replay()
        assert torch.equal(y, w @ x)
        assert y.data_ptr() == memory


def test_every_kind_of_operation_is_repeated():
    x = torch.randn(4, 3)

    def program():
        h = torch.zeros(4, 3)
        h[1:] = x[1:].sin() * 2
        h.add_(1)
        values, places = h.max(0)
        mask = x > 0
        return h, values, places, torch.where(mask, x, 0.5), x.t() @ h, x.mean(), (x.mean() * 2).exp()

    graph, results = captured(program)
    x.normal_()
    graph.replay()
    for got, expected in zip(results, program(), strict=True):
        assert got.dtype is expected.dtype
        assert np.array_equal(got._array, expected._array)


def test_a_whole_training_step():
    def make():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    data = [torch.randn(5, 3) for _ in range(4)]
    (plain, plain_sgd), (fixed, fixed_sgd) = make(), make()
    x = data[0].clone()
    step(plain, plain_sgd, data[0])
    step(fixed, fixed_sgd, x)  # momentum buffers are there before the capture
    x.copy_(data[1])
    graph, loss = captured(lambda: step(fixed, fixed_sgd, x))
    expected = step(plain, plain_sgd, data[1])
    for batch in data[2:]:
        expected = step(plain, plain_sgd, batch)
        x.copy_(batch)
        graph.replay()
    assert torch.equal(loss, expected)
    assert all(torch.equal(a, b) for a, b in zip(fixed.parameters(), plain.parameters(), strict=True))
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(fixed.parameters(), plain.parameters(), strict=True))


X = torch.tensor([1.0, -2.0, 3.0])


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


REFUSED = {
    "a truth value": (lambda: X * 2 if X.sum() > 0 else X, "converting a tensor to a Python boolean reads a value"),
    "a number": (lambda: (X * 2).sum().item(), "converting a tensor to a Python number reads a value"),
    "a list": (lambda: X.tolist(), "converting a tensor to a Python list reads a value"),
    "an array": (lambda: X.numpy(), "converting a tensor to a NumPy array reads a value"),
    "a mask": (lambda: X[X > 0], "the size of what indexing by a mask gives depends on data"),
    "nonzero": (lambda: torch.nonzero(X), "the size of what nonzero gives depends on data"),
    "masked_select": (lambda: torch.masked_select(X, X > 0), "the size of what masked_select gives depends on data"),
    "random numbers": (lambda: X + torch.randn(3), "random numbers are drawn outside of operations"),
    "a Function": (lambda: Double.apply(X), "Double is a custom Function"),
    "other memory": (lambda: X.clone().resize_(2), r"resize_\(\) changes where a tensor lies"),
    "a capture": (lambda: captured(lambda: X * 2), "a capture within a capture"),
}


@pytest.mark.parametrize(("program", "why"), REFUSED.values(), ids=REFUSED)
def test_refused(program, why):
    graph = graphs.Graph()
    with pytest.raises(RuntimeError, match=why) as error, graphs.capture(graph):
        program()
    assert "\n" not in str(error.value)
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    assert bool(X[0] > 0)  # and afterwards nothing is refused


def test_the_rewrites_are_not_refused():
    x, w = X.clone(), torch.randn(3, 3)

    def sorted_by_sign():
        return w @ x[torch.argsort(x <= 0, stable=True)]

    def masked():
        h = x * 1
        h[h == 0] = 1e-4
        return w @ h

    for program in (sorted_by_sign, masked):
        graph, y = captured(program)
        x.copy_(torch.tensor([-1.0, 0.0, 2.0]))
        graph.replay()
        assert torch.equal(y, program())


def test_a_graph_holds_one_capture():
    graph, _ = captured(lambda: X * 2)
    with pytest.raises(RuntimeError, match="already owns a captured graph"), graphs.capture(graph):
        pass
    graph.reset()
    with graphs.capture(graph):
        y = X * 3
    graph.replay()
    assert torch.equal(y, X * 3)
    assert "v1 = mul(c0, 3)" in str(graph.graph)


def test_a_replay_is_seen():
    def program():
        x = torch.tensor([1.0, 2.0])
        graph, y = captured(lambda: (x * 2).exp())
        x.fill_(0)
        graph.replay()
        return graph, y

    written = [event for event in events_of(program) if isinstance(event, StorageWritten)]
    assert [event.value.array().tolist() for event in written] == [[0, 0], [0, 0], [1, 1]]


def test_cuda_stands_for_the_cpu(monkeypatch):
    here = devices.cuda_here
    monkeypatch.setattr(here, "stands_for_cpu", True)
    monkeypatch.setattr(here, "was_warned", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = torch.cuda.CUDAGraph()
        x, w = torch.randn(3, device="cuda"), torch.randn(3, 3, device="cuda").cuda()
        with torch.cuda.stream(torch.cuda.Stream()):
            w @ x
        with torch.cuda.graph(graph):
            y = w @ x
    assert [str(w.message).partition(":")[0] for w in caught] == ["gviz's built-in engine has no GPU"]
    assert caught[0].filename == __file__
    x.copy_(torch.ones(3))
    graph.replay()
    assert torch.equal(y, w @ torch.ones(3))
    assert not torch.cuda.is_available()


def test_without_that_there_is_no_cuda():
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda.CUDAGraph()


@pytest.mark.parametrize("function", ["unique", "unique_consecutive", "nonzero", "argwhere"])
def test_a_size_that_depends_on_data_is_refused_while_capturing(function):
    x = torch.tensor([1.0, 1.0, 0.0])
    with pytest.raises(RuntimeError, match="depends on data"), graphs.capture(graphs.Graph()):
        getattr(torch, function)(x)


def test_results_that_nobody_holds_share_memory():
    x = torch.tensor([1.0, 2.0])

    def program():
        held = x * 2
        h = held
        for _ in range(20):
            h = torch.sin(h) + x
        return held, h

    graph, (held, h) = captured(program)
    places = {tensor.data_ptr() for step in graph._captured._steps for tensor in step.outputs}
    assert len(places) <= 4  # two that are held, two for forty in between
    x.fill_(3)
    graph.replay()
    assert torch.equal(held, x * 2)
    assert torch.equal(h, program()[1])
