"""Regions that PyTorch has compiled: what their parameters and modules are called, and what runs as written."""

import pytest
from adapters.recorded import events_of, of_kind, operations

from gviz.events import Named, ScopeEntered, Warned

pytestmark = pytest.mark.torch


def in_memory(function):
    import torch

    return torch.compile(function, backend="aot_eager")


def names(log):
    return {event.name for event in of_kind(log, Named)}


def test_what_compiling_puts_around_a_module_is_in_no_name():
    from torch import nn, ones

    def program():
        net = nn.Sequential(in_memory(nn.Linear(2, 2)), nn.Linear(2, 1))
        whole = in_memory(nn.Linear(1, 1))
        (net(ones(3, 2)) + whole(ones(3, 1))).sum().backward()
        return net, whole

    log = events_of(program)
    last = {event.node: event.name for event in of_kind(log, Named)}
    model = {"net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias"}
    assert {*last.values()} == {*model, "whole.weight", "whole.bias"}
    scopes = {(event.name, event.kind) for event in of_kind(log, ScopeEntered)}
    assert {("Sequential", "Sequential"), ("Sequential.0", "Linear"), ("whole", "Linear")} <= scopes


@pytest.mark.parametrize("held", ["closure", "method"])
def test_parameters_that_a_compiled_function_alone_holds_are_named(held):
    from torch import nn, ones

    class Trainer:
        def __init__(self):
            self.net = nn.Linear(2, 1)

        def loss(self, x):
            return self.net(x).sum()

    def in_closure():
        inner = nn.Linear(2, 1)
        return lambda x: inner(x).sum()

    def program():
        loss = in_memory(in_closure() if held == "closure" else Trainer().loss)
        loss(ones(3, 2)).backward()
        return loss

    assert {name.rpartition(".")[2] for name in names(events_of(program))} == {"weight", "bias"}


def test_what_was_compiled_before_a_recording_runs_as_written_where_that_is_wanted():
    import torch

    from gviz.adapters.recording_scope import RecordingScope

    doubled = in_memory(lambda x: (x * 2).sin().sum())
    doubled(torch.ones(2, requires_grad=True)).backward()

    def program():
        w = torch.ones(2, requires_grad=True)
        doubled(w).backward()
        return w

    log = events_of(program, RecordingScope(compiled="eager"))
    assert operations(log) == ["MulBackward0", "SinBackward0", "SumBackward0"]
    assert not of_kind(log, Warned)
    assert operations(events_of(program)) == ["CompiledFunctionBackward"]  # and is compiled again afterwards
