"""What several threads say lies in one log, and each moment in what its own thread is about."""

import threading

import numpy as np

import gviz.engine as torch
from gviz import emit
from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    GradFlowed,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    StepStarted,
)
from gviz.explain.event_description import sentence
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_log import Columns, MemoryLog
from gviz.trace.index.threads import Speakers
from gviz.trace.stepping import next_node
from gviz.trace.timeline import Timeline
from gviz.tui.drawing.iterations_and_passes import pass_rows

STARTED, FINISHED, STEP, MADE = (
    KIND_NUMBERS[kind] for kind in (BackwardStarted, BackwardFinished, StepStarted, NodeCreated)
)


def in_turns(*works):
    """What threads do that work at once, each given a function that lets the others come up to it."""
    return Timeline(log_of(*works))


def log_of(*works):
    log, together = MemoryLog(), threading.Barrier(len(works))
    with emit.listening(emit.Channel(log.append)):
        threads = [threading.Thread(target=work, args=(together.wait,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return log


class Beginning:
    """The first events of a log, as of a program that has come so far."""

    def __init__(self, log, count=0):
        self._log, self.count = log, count

    def __len__(self):
        return self.count

    def refresh(self):
        return self.count

    def __getattr__(self, name):
        return getattr(self._log, name)


def goes_back(wait):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x

    def hold(_):
        wait()
        wait()

    y.register_hook(hold)
    y.sum().backward()


def steps(wait):
    w = torch.tensor([1.0], requires_grad=True)
    w.grad = torch.ones(1)
    wait()
    torch.optim.SGD([w], lr=0.1).step()
    wait()


def test_a_step_of_one_thread_is_in_no_pass_of_another():
    timeline = in_turns(goes_back, steps)
    (began,) = (n for n, _ in timeline.select([OptimizerStarted]))
    (pass_start,) = (n for n, _ in timeline.select([BackwardStarted]))
    (pass_end,) = (n for n, _ in timeline.select([BackwardFinished]))
    assert pass_start < began < pass_end
    moment = timeline.at(began)
    assert (moment.pass_nr, moment.step, moment.phase.kind) == (0, 0, "forward")  # that of a closure may follow
    (ended,) = (n for n, _ in timeline.select([OptimizerStepped]))
    assert pass_start < ended < pass_end
    assert sentence(timeline, ended).startswith(f"event {ended}, thread {moment.thread}, optimizer: ")
    assert [said for said, *_ in timeline.contexts.steps_at(began)] == [began]
    assert timeline.contexts.running(began) == (1,)
    assert timeline.at(pass_end).phase.kind == "backward"
    assert timeline.contexts.steps_at(pass_end) == []


def test_each_thread_has_its_own_rules_and_phases():
    def both(wait):
        x = torch.tensor(3.0, requires_grad=True)
        y = x.sin()
        y.register_hook(lambda _: (wait(), None)[1])
        wait()
        (y * 2.0).backward()

    timeline = in_turns(both, both)
    for n, flowed in timeline.select([GradFlowed]):
        moment = timeline.at(n)
        assert (moment.pass_nr, moment.step) == (flowed.pass_nr, flowed.source)
    assert sorted(phase.pass_nr for phase in timeline.phases if phase.kind == "backward") == [1, 2]
    ends, n = [], 0
    while n < len(timeline):
        n = next_node(timeline, n)
        ends.append(n)
    assert all(timeline.at(n).step == 0 for n in ends)


def test_one_thread_is_not_mentioned():
    timeline = in_turns(lambda wait: (torch.tensor(1.0, requires_grad=True) * 2.0).backward())
    assert "thread" not in sentence(timeline, len(timeline))


def test_what_a_thread_of_a_device_says_belongs_to_the_one_that_began_the_pass():
    said = [(MADE, 1, 0), (STARTED, 1, 1), (STEP, 3, 1), (MADE, 2, 0), (MADE, 3, 0), (STARTED, 3, 2), (STEP, 3, 2)]
    said += [(FINISHED, 3, 2), (FINISHED, 1, 1), (STARTED, 2, 3), (STEP, 3, 3), (MADE, 1, 0)]
    kind, thread, pass_nr = np.array(said).T
    whole = Columns(kind, kind, kind, pass_nr, thread)
    assert Speakers().of(whole).tolist() == [1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 2, 1]
    speakers = Speakers()
    one_by_one = [speakers.of(Columns(*(column[[row]] for column in whole))).item() for row in range(len(said))]
    assert one_by_one == Speakers().of(whole).tolist()


def test_the_list_of_passes_says_whose_each_is_where_several_threads_work():
    def both(wait):
        x = torch.tensor(3.0, requires_grad=True)
        wait()
        loss = x * 2.0
        loss.backward()

    rows = [text for text, _, _ in pass_rows(in_turns(both, both), 1)]
    passes = [row for row in rows if "backward pass" in row]
    assert sorted(row.split(",")[0].strip() for row in passes) == ["thread 1", "thread 2"]
    assert any(" 6 (thread " in row for row in rows)


def trains_twice(wait):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    wait()
    for _ in range(2):
        (w * w).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    wait()


def test_a_log_that_grows_divides_in_time_as_one_that_is_read_there():
    log = log_of(trains_twice, steps)
    beginning = Beginning(log)
    growing = Timeline(beginning)
    for n in range(1, len(log) + 1):
        beginning.count = n
        growing.refresh()
        there = Timeline(Beginning(log, n))
        assert (growing.iterations, growing.phases) == (there.iterations, there.phases)
        assert [growing.phase_at(m) for m in range(n + 1)] == [there.phase_at(m) for m in range(n + 1)]
    assert len(growing.iterations) > 1
    assert len({growing.contexts.thread_at(phase.start) for phase in growing.phases}) == 2
