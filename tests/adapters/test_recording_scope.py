"""Parts of a PyTorch program: passes alone, the calls of some modules, everything up to the first nan."""

import math

import pytest

import gviz
from gviz.events import (
    BackwardStarted,
    GradAccumulated,
    GradFlowed,
    GradSet,
    Named,
    NodeCreated,
    ScopeEntered,
    StepStarted,
    StorageWritten,
)
from gviz.explain.check import check
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline
from tests.adapters.recorded import events_of, named, of_kind, operations

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def train(model, steps=2):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.full((2, 3), 1.0 + step)).pow(2).sum()
        loss.backward()
        optimizer.step()
    return loss


def wanted(**options):
    from gviz.adapters.recording_scope import RecordingScope

    return RecordingScope(**options)


def steps_of(log):
    """The rules that ran, with the gradients they were given and those that flowed on, up to numbers of nodes."""
    names = named(log)
    told = []
    for event in log:
        match event:
            case StepStarted(node=node, grads=grads):
                told.append((names[node], [grad and grad.array().tolist() for grad in grads]))
            case GradFlowed(slot=slot, part=part, total=total):
                told.append((slot, part.array().tolist(), total and total.array().tolist()))
            case GradAccumulated(part=part, value=value):
                told.append((part.array().tolist(), value and value.array().tolist()))
    return told


def test_passes_alone_have_the_same_steps():
    everything = events_of(lambda: train(network()))
    passes = events_of(lambda: train(network()), wanted=wanted(phase="backward"))
    assert steps_of(passes) == steps_of(everything)
    assert len(of_kind(passes, BackwardStarted)) == 2
    assert not of_kind(passes, ScopeEntered)
    assert [event.name for event in of_kind(passes, Named)] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    written = [event.value for event in of_kind(passes, StorageWritten)]
    assert written == [event.value for event in of_kind(everything, StorageWritten)]


def test_passes_alone_leave_operations_and_module_calls_alone():
    from gviz import emit
    from gviz.adapters.pytorch.attachment import Attachment

    model = network()
    channel = emit.Channel(lambda event: None)
    with emit.listening(channel), Attachment(channel, scope=wanted(phase="backward")):
        assert not torch.overrides._get_current_function_mode_stack()
        train(model)
        assert not torch.nn.modules.module._global_forward_pre_hooks  # the names are known


def test_a_second_model_gets_its_names_too():
    def program():
        train(network(), steps=1)
        train(torch.nn.Sequential(torch.nn.Linear(3, 1)), steps=3)

    log = events_of(program, wanted=wanted(phase="backward"))
    assert [event.name for event in of_kind(log, Named)][4:] == ["model.0.weight", "model.0.bias"]


@pytest.mark.parametrize("module", ["2", "Sequential.2", "?"])
def test_one_module_and_what_leads_into_it(module):
    log = events_of(lambda: train(network(), steps=1), wanted=wanted(module=module))
    names = [event.name for event in of_kind(log, ScopeEntered)]
    if module == "?":
        assert names == ["Sequential.0", "Sequential.1", "Sequential.2"]
        return
    assert names == ["Sequential.2"]
    assert operations(log) == ["TanhBackward0", "TBackward0", "AddmmBackward0", "SumBackward0"]
    assert [event.name for event in of_kind(log, Named)] == ["2.weight", "2.bias"]
    into = next(event for event in of_kind(log, NodeCreated) if named(log).get(event.node) == "TanhBackward0")
    assert into.inputs in ((), ((0, 0),))
    assert into.outputs[0].value.shape == (2, 4)


def test_a_class_of_modules():
    log = events_of(lambda: train(network(), steps=1), wanted=wanted(module="Lin*"))
    assert [event.kind for event in of_kind(log, ScopeEntered)] == ["Linear", "Linear"]


def nan_at(step):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for now in range(5):
        (w * (math.nan if now == step else 1.0) + math.inf).sum().backward()


@pytest.mark.parametrize(("until", "word"), [("nan", "nan"), ("inf", "inf")])
def test_a_recording_ends_with_the_first(tmp_path, until, word):
    with gviz.record(tmp_path / "t.gviz", until=until):
        nan_at(2)
        assert not math.isnan(1.0)
    with open_trace(tmp_path / "t.gviz") as log:
        events = [event for _, event in log.select(1, len(log) + 1, range(64))]
        created = events[-1]
        assert isinstance(created, NodeCreated)
        assert getattr(created.outputs[0].value.statistics(), word)
        assert len(of_kind(events, BackwardStarted)) == (2 if until == "nan" else 0)
        assert log.finished


def test_without_a_nan_it_ends_with_the_block(tmp_path):
    with gviz.record(tmp_path / "t.gviz", until="nan"):
        nan_at(9)
    with open_trace(tmp_path / "t.gviz") as log:
        events = [event for _, event in log.select(1, len(log) + 1, range(64))]
    assert len(of_kind(events, BackwardStarted)) == 5


def test_the_flight_recorder_holds_what_led_to_the_nan(tmp_path):
    with gviz.record(tmp_path / "t.gviz", until="nan", last=2):
        nan_at(4)
    with open_trace(tmp_path / "t.gviz") as log:
        assert log.dropped.events
        last = log.event(len(log))
    assert last.outputs[0].value.statistics().nan


def test_no_rank_had_a_part_in_a_gradient_that_is_as_it_was_told(tmp_path, monkeypatch):
    """Of values in between, statistics are taken later: they are the same gradients all the same."""
    for home in ("autograd_passes", "optimizers"):
        monkeypatch.setattr(f"gviz.adapters.pytorch.{home}.has_other_ranks", lambda: True)
    with gviz.record(tmp_path / "t.gviz") as made:
        w = torch.nn.Parameter(torch.ones(40, 40))
        optimizer = torch.optim.SGD([w], lr=0.1)
        (w * 2).sum().backward()
        made.flush()
        optimizer.step()
    with open_trace(tmp_path / "t.gviz") as log:
        events = [event for _, event in log.select(1, len(log) + 1, range(64))]
    assert not of_kind(events, GradSet)


def test_what_was_compiled_is_as_before():
    def program():
        model.append(torch.compile(torch.nn.Linear(2, 2), backend="eager"))
        assert "gviz" in vars(model[0])["forward"].__code__.co_filename

    model = []
    events_of(program)
    assert "gviz" not in vars(model[0])["forward"].__code__.co_filename


def test_a_leaf_is_called_as_the_global_that_holds_it():
    world = {"torch": torch, "earlier_nodes": torch.ones(2, requires_grad=True)}
    log = events_of(lambda: exec(compile("(earlier_nodes * 2).sum()", "main.py", "exec"), world))
    assert [event.name for event in of_kind(log, Named)] == ["earlier_nodes"]


@pytest.mark.parametrize("part", [{}, {"phase": "backward"}])
def test_a_parameter_may_be_used_in_what_is_not_recorded(part):
    def program():
        model, other = network(), torch.nn.Linear(3, 3)
        model(other(torch.ones(2, 3)).detach()).mean().backward()
        return model, other

    [found] = [each.finding for each in check(Timeline(MemoryLog(events_of(program, wanted=wanted(**part)))))][:1]
    assert (found.kind, "was not used in anything that was recorded" in found.text) == (
        ("unused", True) if part else ("cut", False)
    )


@pytest.mark.parametrize("part", [{}, {"module": "0"}, {"phase": "backward"}])
def test_a_nan_of_which_not_all_is_known_was_not_born_where_it_is_met(part):
    def program():
        x = torch.zeros(2, 3).log() * 0
        (network()(x).mean() * 2).backward()

    log = events_of(program, wanted=wanted(**part))
    (found,) = [each.finding for each in check(Timeline(MemoryLog(log))) if each.finding.kind.startswith("nan-born")]
    assert (", or before it" not in found.text) is (not part)
    older = any("it may be older: not all that went into it was recorded" in fact.text for fact in found.parts)
    assert older is (bool(part) and found.kind == "nan-born")
