"""A tensor that is given other data is followed there, and what else lay in its old memory stays as it is."""

from importlib import import_module
from itertools import groupby

import numpy as np
import pytest
from replay import replay

from gviz import emit
from gviz.events import DEFINITIONS, NOT_SEEN, DataSet, GradAccumulated, Warned
from gviz.explain.event_description import description
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.snapshot import MATTERING, Snapshot
from gviz.trace.timeline import Timeline

torch = pytest.importorskip("torch")
writes = pytest.importorskip("gviz.adapters.pytorch.in_place_writes")
pytestmark = pytest.mark.torch

BOTH = pytest.mark.parametrize("framework", ["gviz.engine", "torch"])


class Followed:
    """What a program of a framework said, and which nodes and outputs its tensors are."""

    def __init__(self, framework, program):
        self.events = []
        channel = emit.Channel(self.events.append)
        with emit.listening(channel):
            if framework == "torch":
                from gviz.adapters.pytorch.attachment import Attachment
                from gviz.adapters.pytorch.autograd_graph import edge_of

                with Attachment(channel) as attached:
                    self.tensors = program(torch)
                    self.edges = {name: edge_of(attached.session, tensor) for name, tensor in self.tensors.items()}
            else:
                self.tensors = program(import_module(framework))
                self.edges = {name: (tensor._seen.node, tensor._output_nr) for name, tensor in self.tensors.items()}
        self.log = MemoryLog(self.events)
        self.timeline = Timeline(self.log)

    def shown(self, name, events=None):
        """What a tensor holds after all events, by search and by going through them."""
        node, nr = self.edges[name]
        log = MemoryLog(events or self.events)
        timeline = Timeline(log)
        end = len(timeline)
        found, gone_through = timeline.at(end).state(node).outputs[nr], replay(log, end)[node].outputs[nr]
        assert found == gone_through
        return log.array(found.value), found

    def check(self):
        alive = Snapshot()
        for event in self.events:
            if type(event) in MATTERING:
                alive.process(event)
        as_events = [event for event in self.events if type(event) in DEFINITIONS] + alive.as_events()
        for name, tensor in self.tensors.items():
            for events in (self.events, as_events):
                array, output = self.shown(name, events)
                np.testing.assert_array_equal(array, tensor.detach().numpy(), err_msg=name)
                assert array.shape == tuple(tensor.shape), name
                assert not tensor.requires_grad or output.version == tensor._version, name
        assert not [event for event in self.events if isinstance(event, Warned) and event.category == NOT_SEEN]


def other_memory(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    old, y = x.data[1:], x * 2
    value = torch.tensor([7.0, 8.0, 9.0])
    x.data = value
    value.add_(1)
    new = x.detach()[1:]
    with torch.no_grad():
        x.mul_(2)
        old.add_(5)
    return {"x": x, "y": y, "value": value, "old": old, "new": new, "again": x * 1}


def a_part_of_other_memory(torch):
    x, buffer = torch.tensor([1.0, 2.0], requires_grad=True), torch.zeros(5)
    y = x * 1
    x.data = buffer[1:3]
    buffer[2] = 4.0
    buffer[4] = 6.0
    return {"x": x, "buffer": buffer, "y": y, "again": x * 2}


def there_and_back(torch):
    x, average = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([5.0, 6.0])
    y = x * 1
    backup = x.data
    x.data = average
    z = x * 1
    x.data = backup
    average.add_(1)
    backup.mul_(3)
    return {"x": x, "backup": backup, "average": average, "y": y, "z": z}


def a_result(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    view = y[:1]
    y.data = torch.tensor([5.0, 6.0])
    return {"x": x, "y": y, "view": view, "again": y * 2}


def another_shape(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x * 1
    x.data = torch.ones(2, 3)
    return {"x": x, "again": x * 2}


def reshaped(change):
    def program(torch):
        x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
        view = x.data[:, 1:]
        with torch.no_grad():
            change(x)
        (x * 2).sum().backward()
        view.add_(1)
        return {"x": x, "view": view, "again": x * 2}

    return program


PROGRAMS = {it.__name__: it for it in (other_memory, a_part_of_other_memory, there_and_back, a_result, another_shape)}
CHANGES = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
}


@BOTH
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_everything_shows_what_it_shows_to_the_program(framework, program):
    Followed(framework, program).check()


@BOTH
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_leaf_that_was_given_another_shape_has_that(framework, change):
    followed = Followed(framework, reshaped(change))
    followed.check()
    shape, (node, _) = tuple(followed.tensors["x"].shape), followed.edges["x"]
    (grad,) = [event.part for event in followed.events if isinstance(event, GradAccumulated) and event.node == node]
    assert grad.shape == shape
    assert next(event.value.shape for event in followed.events if isinstance(event, DataSet)) == shape


@BOTH
def test_other_memory_is_told_with_its_line(framework):
    followed = Followed(framework, other_memory)
    told = [description(followed.timeline, followed.timeline.at(seq)) for seq, _ in followed.timeline.select([DataSet])]
    assert told[0] == "its data were set, version 0, now [7 8 9]"
    assert told[1].startswith("its data were changed by #")
    assert told[1].endswith("add_, version 0, now [8 9 10]")
    first = next(event for event in followed.events if isinstance(event, DataSet))
    (frame, *_) = followed.timeline.stack(first.stack)
    assert frame.function == "other_memory"


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_both_frameworks_say_the_same(program):
    said = []
    for framework in ("gviz.engine", "torch"):
        told = [event for event in Followed(framework, program).events if isinstance(event, DataSet)]
        said.append([(version, value) for (version, value), _ in groupby((it.version, it.value) for it in told)])
    assert said[0] == said[1]


def test_a_model_of_another_dtype_keeps_its_parameters():
    def program(torch):
        torch.manual_seed(0)
        net = torch.nn.Linear(2, 1)
        net(torch.ones(1, 2)).sum().backward()
        net.double()
        net(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
        return {"weight": net.weight, "bias": net.bias}

    followed = Followed("torch", program)
    followed.check()
    for name, tensor in followed.tensors.items():
        array, output = followed.shown(name)
        assert (array.dtype, output.grad.dtype) == (np.float64, "float64")
        np.testing.assert_array_equal(followed.log.array(output.grad), tensor.grad.numpy())


def test_a_model_that_moves_to_a_device_says_from_where_to_where(monkeypatch):
    """PyTorch assigns ``.data`` between the CPU and a GPU alone, and makes new parameters for the device ``meta``."""

    def program(torch):
        net = torch.nn.Linear(2, 1)
        net(torch.ones(1, 2)).sum().backward()
        net.half()
        net.double()  # in this test the GPU is where these are
        net.float()
        return {"weight": net.weight}

    there = {torch.float64: torch.device("cuda", 0)}
    monkeypatch.setattr(writes, "device_of", lambda tensor: there.get(tensor.dtype, torch.device("cpu")))
    followed = Followed("torch", program)
    followed.check()
    node, _ = followed.edges["weight"]
    told = [(seq, event) for seq, event in followed.timeline.select([DataSet]) if event.node == node]
    moves = [(it.source, it.device, it.value.dtype) for _, it in told]
    assert moves == [("", "", "float16"), ("cpu", "cuda:0", "float64"), ("cuda:0", "cpu", "float32")]
    said = [description(followed.timeline, followed.timeline.at(seq)) for seq, _ in told]
    assert [text.partition(",")[0] for text in said] == [
        "its data were set", "its data were moved from cpu to cuda:0", "its data were moved from cuda:0 to cpu",
    ]  # fmt: skip


def test_parameters_in_one_buffer_are_told_where_they_are_written_to():
    def program(torch):
        a, b = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
        (a * b).sum().backward()
        flat = torch.arange(4.0)
        a.data, b.data = flat[:2], flat[2:]
        optimizer = torch.optim.SGD([a, b], lr=1.0)
        optimizer.step()
        return {"a": a, "b": b, "flat": flat}

    followed = Followed("torch", program)
    followed.check()
    a, b = followed.edges["a"][0], followed.edges["b"][0]
    assert [event.node for event in followed.events if isinstance(event, DataSet)] == [a, b, a, b]
