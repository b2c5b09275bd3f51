"""Which operations are an optimizer's own, and what of a program a step of one begins and ends."""

import contextlib
import threading

import pytest
from recording import events_of

import gviz.engine as torch
from gviz.events import DataSet, NodeCreated, OptimizerStarted, OptimizerStepped, StackSeen, StorageWritten
from gviz.explain.parameter_updates import step_of
from gviz.trace.event_log import MemoryLog
from gviz.trace.iterations import Iterations
from gviz.trace.optimizer_steps import OptimizerSteps
from gviz.trace.timeline import Timeline


def weight():
    return torch.tensor([2.0, 3.0], requires_grad=True)


def adam():
    w = weight()
    optimizer = torch.optim.Adam([w], lr=0.1)
    for _ in range(3):
        loss = (w * w).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def with_closure():
    w = weight()
    optimizer = torch.optim.LBFGS([w], lr=0.1, max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = (w * torch.tensor([1.0, 2.0]) * w).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)


def two_optimizers():
    v, w = weight(), weight()
    first = torch.optim.SGD([v], lr=0.1, momentum=0.9)
    second = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(2):
        (v * w).sum().backward()
        first.step()
        second.step()


def raises_once():
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    def closure():
        raise ValueError

    (w * w).sum().backward()
    with contextlib.suppress(ValueError):
        optimizer.step(closure)
    for _ in range(2):
        data = torch.tensor([1.0, 2.0])
        (data * w).sum().backward()
        optimizer.step()


def recorded(program, *, starts=True):
    return Timeline(MemoryLog([one for one in events_of(program) if starts or not isinstance(one, OptimizerStarted)]))


def kinds(timeline):
    return [(timeline.iteration_at(phase.start).index, phase.kind) for phase in timeline.phases]


def own(timeline):
    """The nodes that optimizers have made, by the number of the step."""
    found = {}
    for node in timeline.nodes:
        if said := timeline.contexts.step_of(timeline.info(node)):
            found.setdefault(said, []).append(node)
    return list(found.values())


@pytest.mark.parametrize("program", [adam, two_optimizers])
def test_a_recording_that_says_no_starts_is_understood_as_far_as_its_ends_tell(program):
    assert own(recorded(program)) == own(recorded(program, starts=False)) != []


def test_a_step_has_all_nodes_between_its_start_and_its_end():
    timeline = recorded(adam)
    seqs = [[n for n, _ in timeline.select([kind])] for kind in (OptimizerStarted, OptimizerStepped)]
    made = [[event.node for _, event in timeline.select([NodeCreated], *span)] for span in zip(*seqs, strict=True)]
    assert own(timeline) == made
    assert kinds(timeline) == [(i, kind) for i in range(3) for kind in ("forward", "backward", "optimizer")]


def test_what_a_closure_does_is_the_programs_and_begins_with_its_data_or_with_the_step_that_calls_it():
    timeline = recorded(with_closure)
    passes = [phase for phase in timeline.phases if phase.kind == "backward"]
    assert len(timeline.iterations) == len(passes) == 4
    first = [timeline.event(iteration.start) for iteration in timeline.iterations[1:]]
    assert [one.kind for one in first] == ["constant", "LBFGS", "constant"]
    assert kinds(timeline) == [(i, kind) for i in range(4) for kind in ("forward", "backward", "optimizer")]


def test_the_step_of_a_second_optimizer_is_no_forward():
    assert kinds(recorded(two_optimizers)) == [
        (i, kind) for i in range(2) for kind in ("forward", "backward", "optimizer")
    ]


def written_after_a_step_that_raised():
    w = weight()
    optimizer = torch.optim.SGD([w], lr=0.1)
    with contextlib.suppress(ZeroDivisionError):
        optimizer.step(lambda: 1 / 0)
    (w * w).sum().backward()
    w.data = torch.tensor([float("nan"), 1.0])
    return w


def raises_within():
    class Raises(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            raise ValueError

    w, other = weight(), weight()
    optimizer = Raises([w, other], lr=0.1)
    (w * w).sum().backward()
    with contextlib.suppress(ValueError):
        optimizer.step()
    return w


def raises_before():
    def refuse(*_):
        raise KeyError

    optimizer = torch.optim.SGD([weight()], lr=0.1)
    optimizer.register_step_pre_hook(refuse)
    with contextlib.suppress(KeyError):
        optimizer.step()
    return optimizer


def ends(timeline):
    return [event for _, event in timeline.select([OptimizerStepped])]


def test_a_step_that_raised_is_over():
    timeline = recorded(raises_once)
    starts = [n for n, _ in timeline.select([OptimizerStarted])]
    stepped = [n for n, _ in timeline.select([OptimizerStepped])]
    assert [event.raised for event in ends(timeline)] == ["ValueError", "", ""]
    assert [timeline.contexts.steps_at(n)[0][:3] for n in starts] == [
        (start, start, end) for start, end in zip(starts, stepped, strict=True)
    ]
    assert timeline.contexts.steps_at(starts[1] - 1) == []
    assert kinds(timeline)[-3:] == [(2, "forward"), (2, "backward"), (2, "optimizer")]


def test_what_is_written_after_a_step_that_raised_is_not_the_optimizers():
    timeline = recorded(written_after_a_step_that_raised)
    ((seq, _),) = timeline.select([DataSet])
    assert step_of(timeline, 1, seq) is None


def test_what_is_written_in_a_step_is_the_optimizers_if_it_is_a_parameter_of_its():
    events = [event for event in events_of(raises_within) if not isinstance(event, StackSeen)]
    timeline = Timeline(MemoryLog(events))
    write = next(n for n, event in timeline.select([StorageWritten]) if event.node)
    assert step_of(timeline, 1, write) == timeline.event(next(timeline.select([OptimizerStarted]))[0])
    assert step_of(timeline, 2, write) is None


def test_a_step_that_raised_has_updated_what_it_has_written():
    assert [(end.kind, end.parameters, end.raised) for end in ends(recorded(raises_within))] == [
        ("Raises", (1,), "ValueError")
    ]


def test_a_step_whose_hook_raised_has_begun_and_is_over():
    timeline = recorded(raises_before)
    assert [(end.parameters, end.raised) for end in ends(timeline)] == [((), "KeyError")]


def test_steps_of_two_threads_may_overlap():
    steps = OptimizerSteps()
    events = [OptimizerStarted("SGD", 1), OptimizerStarted("Adam", 2), OptimizerStepped("SGD", (), 1)]
    for seq, event in enumerate([*events, OptimizerStepped("Adam", (), 2)], 1):
        steps.process(seq, event)
    assert steps.rows == [(1, 1, 3, 1), (2, 2, 4, 2)]
    assert not steps.running


def test_what_a_closure_without_a_line_of_its_own_does_is_the_programs():
    def program():
        w = weight()
        torch.optim.SGD([w], lr=0.1).step(w.sum)
        return w

    timeline = recorded(program)
    (tracked,) = (node for node in timeline.nodes if timeline.info(node).created.requires_grad and node != 1)
    assert timeline.contexts.step_of(timeline.info(tracked)) == 0


def by_two_threads():
    both = threading.Barrier(2)

    def work():
        w = weight()
        optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

        def closure():
            loss = (w * w).sum()
            loss.backward()
            both.wait()  # none ends its step before the other has begun
            return loss

        for _ in range(2):
            optimizer.step(closure)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_steps_that_two_threads_call_at_one_line_are_each_their_own():
    timeline = recorded(by_two_threads)
    steps = sorted({row for n, _ in timeline.select([OptimizerStarted]) for row in timeline.contexts.steps_at(n)})
    ends = {end: timeline.event(end) for _, _, end, _ in steps}
    assert len(steps) == len(ends) == 4
    for said, _, end, stack in steps:
        begun = timeline.event(said)
        assert isinstance(begun, OptimizerStarted)
        assert (begun.kind, begun.stack) == ("SGD", stack)
        assert ends[end].stack == stack
    assert len({end.parameters for end in ends.values()}) == len({stack for *_, stack in steps}) == 2


def test_what_is_over_can_be_forgotten():
    graphs, whole = Iterations(), Iterations()
    log = MemoryLog(events_of(with_closure))
    for seq in range(1, len(log) + 1):
        graphs.process(seq, log.event(seq))
        whole.process(seq, log.event(seq))
        graphs.forget(seq)
        assert graphs.steps.running.keys() == whole.steps.running.keys()
        assert graphs.steps.rows == [row for row in whole.steps.rows if not row[2]]
