"""Captured CUDA graphs and the sync-debug mode, on a device that is played by the CPU.

Every tensor says that it lies on CUDA. A capture notes what PyTorch's dispatcher runs, a replay runs that again on the
same memory, and a copy to the host does what a device would: fail within a capture, warn or fail as the mode says.
"""

import importlib
import threading
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from gviz import events as e
from gviz.adapters.recording_scope import RecordingScope
from gviz.explain.check import check
from gviz.explain.event_description import description
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of, of_kind
from tests.adapters.test_references import unsound

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nan = float("nan")

WORDS = "Replays of a CUDA graph run without gviz: "


class Device:
    """What the played device is asked, and the graph that it captures."""

    def __init__(self):
        self.mode = 0
        self.modes_set = []
        self.captured = None
        self.read_in_capture = 0
        self.copies = 0
        self.during_copy = lambda: None

    def get_mode(self):
        return self.mode

    def set_mode(self, mode):
        self.mode = {"default": 0, "warn": 1, "error": 2}.get(mode, mode)
        self.modes_set.append(self.mode)

    def is_capturing(self):
        return self.captured is not None

    def to_host(self, copy, tensor):
        self.copies += 1
        if self.captured is not None:
            self.read_in_capture += 1
            raise RuntimeError("operation not permitted when stream is capturing")
        self.during_copy()
        if self.mode == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        if self.mode == 1:
            warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        return copy(tensor)


@pytest.fixture
def device(monkeypatch):
    played, host = Device(), torch.Tensor.cpu

    class Noting(torch.utils._python_dispatch.TorchDispatchMode):
        def __init__(self, steps):
            super().__init__()
            self.steps = steps

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            self.steps.append((function, args, kwargs or {}, made))
            return made

    class Graph:
        def capture_begin(self, pool=None, capture_error_mode="global"):
            self.steps = []
            self.noting = Noting(self.steps)
            self.noting.__enter__()
            played.captured = self

        def capture_end(self):
            played.captured = None
            self.noting.__exit__(None, None, None)

        def replay(self):
            with torch.no_grad(), torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
                for function, args, kwargs, made in self.steps:
                    again(function, args, kwargs, made)

        def reset(self):
            self.steps = []

    def again(function, args, kwargs, made):
        """Run a step; what it gives goes to the memory that it gave before."""
        if any(result.alias_info is not None for result in function._schema.returns):
            if any(it.alias_info is not None and it.alias_info.is_write for it in function._schema.arguments):
                function(*args, **kwargs)
            return
        if isinstance(made, torch.Tensor) and "empty" not in function.__name__:
            made.data.copy_(function(*args, **kwargs))

    importlib.import_module("torch._dynamo")  # else the first step of an optimizer does, and finds no real stream

    class capture:
        def __init__(self, graph, pool=None, **later):  # since 2.14 also the stream, and more
            self.graph = graph

        def __enter__(self):
            self.graph.capture_begin()

        def __exit__(self, *error):
            self.graph.capture_end()

    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda tensor: True), raising=False)
    monkeypatch.setattr(torch.Tensor, "is_cpu", property(lambda tensor: False), raising=False)
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: played.to_host(host, tensor), raising=False)
    for home in (torch.cuda, torch.cuda.graphs):
        monkeypatch.setattr(home, "CUDAGraph", Graph)
        monkeypatch.setattr(home, "graph", capture)
        monkeypatch.setattr(home, "is_current_stream_capturing", played.is_capturing)
    monkeypatch.setattr(torch.cuda.graphs, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", played.get_mode)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", played.set_mode)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "Stream", SimpleNamespace)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    return played


def captured(step):
    """A graph of what a step does, and what it gave."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        given = step()
    return graph, given


def said(log):
    return [it.message for it in of_kind(log, e.Warned) if it.category == e.NOT_SEEN and it.message.startswith(WORDS)]


def training():
    """The captured step of a training by hand, replayed with other inputs; the last of them is nan."""
    x = torch.ones(8)
    w = torch.full((8,), 2.0, requires_grad=True)

    def step():
        w.grad = None
        loss = (w * x).sum()
        loss.backward()
        return loss

    step()
    graph, loss = captured(step)
    found = []
    for value in (1.0, 2.0, nan):
        x.fill_(value)
        graph.replay()
        found.append((loss.detach().clone(), w.grad.clone()))
    seen = loss * 1
    return graph, loss, seen, w, found


def values_after(log, wanted):
    """The elements in every write of the memory, or to the ``.grad``, of the nodes for which `wanted` is true."""
    return [it.value.array().tolist() for it in log if wanted(it) and it.value is not None and it.value.data]


def test_the_played_device_replays(device):
    *_, found = training()
    assert [loss.item() for loss, _ in found][:2] == [16.0, 32.0]
    assert found[2][0].isnan()
    assert found[1][1].tolist() == [2.0] * 8


def test_replays_are_said_to_be_unseen_once(device):
    log = events_of(training)
    assert len(said(log)) == 1


def test_replays_of_a_graph_captured_before_are_said_to_be_unseen(device):
    graph, loss = captured(lambda: torch.ones(2) * 2)
    assert len(said(events_of(lambda: (graph.replay(), graph.replay(), loss)))) == 1


def test_nothing_is_said_where_no_graph_is_replayed(device):
    assert not said(events_of(lambda: torch.ones(2) * 2))


def test_what_a_replay_wrote_is_in_the_recording(device):
    log = events_of(training)
    scopes = {it.scope for it in of_kind(log, e.ScopeEntered) if it.kind == "captured graph"}
    assert len(scopes) == 3
    losses = values_after(log, lambda it: isinstance(it, e.StorageWritten) and it.value.shape == (1,))
    assert str(losses) == "[[16.0], [32.0], [nan]]"
    grads = values_after(log, lambda it: isinstance(it, e.GradSet))
    assert [grad[0] for grad in grads[:2]] == [1.0, 2.0]
    assert str(grads[2][0]) == "nan"


def test_a_nan_of_a_replay_is_found_where_it_came_in(device):
    log = events_of(training)
    assert not unsound(log)
    timeline = Timeline(MemoryLog(log))
    for seq in range(1, len(timeline) + 1):
        description(timeline, timeline.at(seq))
    [found] = check(timeline)
    assert found.finding.kind == "nan-born"
    assert "fill_" in found.finding.text


def test_nothing_is_read_and_computed_within_a_capture(device):
    def program():
        x = torch.ones(3)
        w = torch.ones(3, requires_grad=True)
        buffer = torch.zeros(3)

        def step():
            used = w * x + w * 2  # contributions of two uses are summed
            buffer.add_(used.detach())
            used.sum().backward()
            other = torch.zeros(3, requires_grad=True)
            return torch.autograd.grad((other * w).sum(), other), used

        kept = captured(step)
        steps.append([function.__name__ for function, *_ in kept[0].steps])
        return kept, buffer, w

    steps = []
    log = events_of(program)
    program()
    assert device.read_in_capture == 0
    assert steps[0] == steps[1]
    assert not unsound(log)
    assert len(said(log)) == 1


def test_what_a_capture_writes_in_place_is_written_by_replays(device):
    def program():
        count, x = torch.zeros(2), torch.ones(2)
        first = count * 1
        graph, _ = captured(lambda: count.add_(x))
        count.zero_()
        for _ in range(2):
            graph.replay()
        return first, count, graph, x

    log = events_of(program)
    made = [it for it in of_kind(log, e.NodeCreated) if it.outputs[0].value.shape == (2,)]
    storage = made[0].outputs[0].storage
    writes = values_after(log, lambda it: isinstance(it, e.StorageWritten) and it.storage == storage)
    assert writes[-3:] == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_what_a_capture_only_reads_is_not_written_by_replays(device):
    def program():
        x = torch.ones(2)
        graph, y = captured(lambda: x.view(2, 1) * 2)
        graph.replay()
        return x, y, graph

    log = events_of(program)
    first = of_kind(log, e.NodeCreated)[0]
    assert first.kind == "constant"
    assert of_kind(log, e.StorageWritten)
    assert first.outputs[0].storage not in {it.storage for it in of_kind(log, e.StorageWritten)}


def test_other_tensors_have_their_values_after_a_capture(device):
    def program():
        kept = captured(lambda: torch.ones(2) * 2)
        return kept, torch.ones(2) * 3

    log = events_of(program)
    assert of_kind(log, e.NodeCreated)[-1].outputs[0].value.array().tolist() == [3.0, 3.0]


def test_a_capture_that_fails_is_over(device):
    def program():
        with pytest.raises(ZeroDivisionError):
            captured(lambda: 1 // 0)
        return torch.ones(2) * 3

    assert of_kind(events_of(program), e.NodeCreated)[-1].outputs[0].value.array().tolist() == [3.0, 3.0]


def graphed(make=None):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sample = torch.randn(3, 4, requires_grad=True)
    model = (make or torch.cuda.make_graphed_callables)(model, (sample,))
    losses = []
    for _ in range(3):
        opt.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, model


def kinds_found(log):
    return [it.finding.kind for it in check(Timeline(MemoryLog(log)))]


def parameters(log):
    nodes = {it.node for it in of_kind(log, e.NodeCreated) if it.kind == "parameter"}
    return sorted(it.name for it in of_kind(log, e.Named) if it.node in nodes)


def test_graphed_callables_are_recorded_without_their_warm_up(device, monkeypatch):
    empty_like = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda tensor, **more: empty_like(tensor, **more).fill_(nan))
    plain, _ = graphed()
    written = events_of(lambda: graphed(lambda model, samples: model))
    found = []
    log = events_of(lambda: found.append(graphed()))
    assert found[0][0] == plain
    assert len(set(plain)) == 3
    assert not unsound(log)
    assert device.read_in_capture == 0
    assert len(said(log)) == 1
    assert kinds_found(log) == kinds_found(written)
    assert len(of_kind(log, e.BackwardStarted)) == 3
    assert parameters(log) == parameters(written) == ["0.bias", "0.weight", "2.bias", "2.weight"]


@pytest.mark.parametrize("mode", ["warn", "error"])
def test_the_sync_debug_mode_does_not_count_what_gviz_copies(device, mode):
    def program():
        torch.cuda.set_sync_debug_mode(mode)
        w = torch.ones(3, requires_grad=True)
        y = (w * 2).sum()
        y.backward()
        modes.append(device.mode)
        return w, y

    modes = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = events_of(program)
    assert modes == [{"warn": 1, "error": 2}[mode]]
    assert device.copies
    made = of_kind(log, e.NodeCreated)
    assert all(it.outputs[0].value.data is not None for it in made)
    assert of_kind(log, e.GradAccumulated)[0].part.array().tolist() == [2.0] * 3


def test_no_mode_is_set_where_none_is_in_use(device):
    events_of(lambda: torch.ones(2) * 2)
    assert device.copies
    assert not device.modes_set


def test_the_program_is_warned_of_its_own_copies(device):
    def program():
        torch.cuda.set_sync_debug_mode("warn")
        (torch.ones(2) * 2).cpu()

    with pytest.warns(UserWarning, match="synchronizing") as caught:
        events_of(program)
    assert len(caught) == 1


def test_a_mode_that_another_thread_sets_meanwhile_stays(device):
    from gviz.adapters.pytorch.device_values import to_host

    device.set_mode("warn")
    device.during_copy = lambda: device.set_mode("error") if device.mode == 0 else None
    with pytest.raises(RuntimeError, match="synchronizing"):
        to_host(torch.ones(2))
    assert device.mode == 2


def test_threads_that_copy_at_once_leave_the_mode_as_it_was(device):
    from gviz.adapters.pytorch.device_values import to_host

    device.set_mode("error")
    both = threading.Barrier(2)
    device.during_copy = lambda: both.wait(60)
    threads = [threading.Thread(target=to_host, args=(torch.ones(2),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert device.mode == 2
    assert device.modes_set == [2, 0, 2]


def test_grads_of_a_replay_are_said_where_only_passes_are_recorded(device):
    log = events_of(training, wanted=RecordingScope(phase="backward"))
    assert len(said(log)) == 1
    grads = values_after(log, lambda it: isinstance(it, e.GradSet))
    assert grads[:2] == [[1.0] * 8, [2.0] * 8]
