import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import stories
from histories import histories
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import events_of

import gviz
import gviz.engine as torch
from gviz import events as e
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.trace.event_log import MemoryLog
from gviz.trace.file.paths import trace_size
from gviz.trace.file.retention_policy import Bounds, bounds
from gviz.trace.file.snapshot import MATTERING, Snapshot
from gviz.trace.timeline import Timeline

ROOT = Path(__file__).parents[2]


def training(steps=4, *, marks=True):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        if marks:
            gviz.mark(f"step {step}")
        x = torch.randn(4, 2)
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, loss


def recurrent(steps=5):
    """State that goes from step to step, cut from the graph; views and writes through them; accumulated gradients."""
    w = torch.tensor([[0.5, 0.1], [0.2, 0.4]], requires_grad=True)
    state, memory = torch.ones(2), torch.zeros(6)
    halves = memory[:3], memory[3:]
    for step in range(steps):
        state = (w @ state.detach()).tanh()
        state.retain_grad()
        halves[step % 2][step % 3] = float(step)
        state.sum().backward(retain_graph=step % 3 == 0)
        if step % 3 == 2:
            w.grad = None
    return state, halves


def adversaries(steps=4):
    """Two models, one of them frozen in turns, and a gradient of a gradient."""
    torch.manual_seed(0)
    a, b = nn.Linear(2, 2), nn.Linear(2, 1)
    together = a.weight * 2
    for step in range(steps):
        a.weight.requires_grad_(step % 2 == 0)
        x = torch.ones(1, 2, requires_grad=True)
        out = b(a(x)).sum()
        (slope,) = torch.autograd.grad(out, x, create_graph=True)
        (out + (slope * slope).sum()).backward()
        with torch.no_grad():
            b.weight -= 0.1 * b.weight.grad
    return a, b, together


PROGRAMS = (training, recurrent, adversaries)


def cuts(events):
    """The moments at which no pass runs, by the number of events before."""
    running = 0
    for n, event in enumerate(events):
        if not running:
            yield n
        running += isinstance(event, e.BackwardStarted) - isinstance(event, e.BackwardFinished)
    yield len(events)


def kept_from(events, n):
    """The log that begins with what is alive after `n` events, and how many of its events say so."""
    alive = Snapshot()
    for event in events[:n]:
        if type(event) in MATTERING:
            alive.process(event)
    again = alive.as_events()
    return again, MemoryLog([*again, *events[n:]])


def essence(state, begun):
    """What must not depend on where a log begins; of passes only those that are `begun` in all of it."""
    now = [
        (out.value, out.version, out.grad, *((out.incoming, out.expected, [part.value for part in out.parts]) if
         state.pass_nr > begun else ())) for out in state.outputs
    ]  # fmt: skip
    in_pass = (state.pass_nr, state.step) if state.pass_nr > begun else ()
    return state.requires_grad, state.saved, bool(state.saved_freed), bool(state.freed), in_pass, now


def assert_alike(whole, kept, shift, start):
    """From event `start` of `kept` on, both show the same of what is there; it is number `shift` more in `whole`."""
    begun = max((event.pass_nr for _, event in whole.select([e.BackwardStarted], 1, start + shift + 1)), default=0)
    for n in range(start, len(kept) + 1):
        now, then = kept.at(n), whole.at(n + shift)
        there = [node for node, state in zip(whole.nodes, then.states(whole.nodes), strict=True) if state]
        known = [node for node in there if node in kept.nodes]
        gone = set(there) - set(known)
        assert all(0 < then.state(node).freed <= start + shift for node in gone)
        now.states(known)  # at once: one by one it takes three times as long
        for node in known:
            assert essence(now.state(node), begun) == essence(then.state(node), begun), (n, node)
            assert kept.info(node).scope == whole.info(node).scope
        assert (now.scope, now.step) == (then.scope, then.step)
        assert n == start or now.event == then.event


def logs_of(events):
    definitions = [event for event in events if isinstance(event, e.DEFINITIONS)]
    said = [event for event in events if not isinstance(event, e.DEFINITIONS)]
    return definitions, said


def assert_cuts_change_nothing(events, chosen):
    definitions, said = logs_of(events)
    whole = Timeline(MemoryLog(events))
    for n in chosen(list(cuts(said))):
        again, log = kept_from(said, n)
        assert len(again) <= n
        for definition in definitions:
            log.append(definition)
        assert_alike(whole, Timeline(log), n - len(again), len(again))


@given(histories, st.data())
@settings(deadline=None, max_examples=40)
def test_what_is_alive_goes_on_as_the_whole(events, data):
    events = [event for event in events if not isinstance(event, e.NodeFreed)]  # this world uses what was freed
    assert_cuts_change_nothing(events, lambda possible: [data.draw(st.sampled_from(possible))])


@pytest.mark.parametrize("program", PROGRAMS)
def test_so_it_does_in_real_programs(program):
    assert_cuts_change_nothing(events_of(program), lambda possible: possible[:: max(len(possible) // 4, 1)])


@pytest.mark.parametrize("story", [stories.demo, stories.failed, stories.iterations, stories.late])
def test_and_in_the_stories(story):
    log = story()._log
    assert_cuts_change_nothing(list(log.everything()), lambda possible: possible)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_said_again_does_not_grow_with_the_run(program):
    lengths = set()
    for steps in (6, 12, 18):
        _, said = logs_of(events_of(lambda steps=steps: program(steps)))
        lengths.add(len(kept_from(said, len(said))[0]))
    assert len(lengths) == 1


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("limit", [1024, 1 << 30])
def test_a_file_keeps_the_last_iterations(tmp_path, program, limit):
    with gviz.record(tmp_path / "whole.gviz", limit=limit):
        held = program()
    del held
    with gviz.record(tmp_path / "last.gviz", last=2, limit=limit):
        held = program()
    del held
    whole, kept = gviz.load(tmp_path / "whole.gviz"), gviz.load(tmp_path / "last.gviz")
    first = whole.iterations[-2].start
    again = kept.dropped.again
    assert kept.dropped.events == first - 1
    assert [kept.event(n) for n in range(again + 1, len(kept) + 1)] == [
        whole.event(n) for n in range(first, len(whole) + 1)
    ]
    assert_alike(whole, kept, first - 1 - again, again)


def test_a_file_keeps_the_last_marks(tmp_path):
    with gviz.record(tmp_path / "last.gviz", last="3 marks"):
        training(9)
    kept = gviz.load(tmp_path / "last.gviz")
    assert [name for _, name in kept.marks] == ["step 6", "step 7", "step 8"]
    assert kept.event(kept.dropped.again + 1) == e.Marked("step 6")


def test_fewer_iterations_than_were_asked_for_are_all_kept(tmp_path):
    with gviz.record(tmp_path / "last.gviz", last=50):
        training(3)
    kept = gviz.load(tmp_path / "last.gviz")
    assert (kept.dropped.events, kept.dropped.again, len(kept.iterations)) == (0, 0, 3)


def test_a_long_run_takes_no_more_room_than_a_short_one(tmp_path):
    sizes = []
    for steps in (30, 120):
        with gviz.record(tmp_path / f"{steps}.gviz", last=3, limit=1 << 30) as recording:
            program = training(steps)
        ring = recording._writer._ring
        sizes.append((tmp_path / f"{steps}.gviz").stat().st_size)
        assert max(len(ring._batches), len(ring._parts), len(ring._snapshot._nodes)) < 100
        del program
    assert sizes[1] < 1.2 * sizes[0]


def test_the_arrays_of_what_is_kept_are_there_and_no_others(tmp_path):
    with gviz.record(tmp_path / "last.gviz", last=2, limit=1 << 30):
        weight = torch.ones(40, 40, requires_grad=True)
        for step in range(8):
            (weight * float(step)).sum().backward()
    kept = gviz.load(tmp_path / "last.gviz")
    values = [out.value for node in kept.nodes for out in kept.at(len(kept)).state(node).outputs]
    assert sum(value.blob is not None for value in values) >= 3
    assert all(kept.array(value) is not None for value in values if value.blob is not None)
    hashes = kept._log._connection.rows("SELECT count(*) FROM chunk")[0][0]
    assert hashes < 8


def test_a_size_is_kept_to_all_the_time(tmp_path):
    path, limit, sizes = tmp_path / "last.gviz", 1 << 20, []
    with gviz.record(path, max_size=limit) as recording:
        x = torch.ones(20, requires_grad=True)
        for step in range(900):
            (x * x + float(step)).sum().backward()
            if step % 20 == 0:
                recording.flush()
                sizes.append(trace_size(path))
    kept = gviz.load(path)
    assert max(sizes) <= limit
    assert path.stat().st_size <= limit
    assert kept.dropped.events > 0
    assert len(kept.iterations) > 20
    assert kept.at(len(kept)).state(kept.nodes[0]).outputs[0].grad is not None


def test_a_pass_that_alone_is_larger_ends_the_recording_and_says_so(tmp_path, capfd):
    path = tmp_path / "last.gviz"
    with gviz.record(path, max_size="1M"):
        y = torch.ones(200, requires_grad=True)
        for _ in range(2500):
            y = y * 1.0
        y.sum().backward()
    assert "the trace is limited to 1 MiB" in capfd.readouterr().err
    assert len(gviz.load(path)) > 1000


FOREVER = """
import sys, gviz, gviz.engine as torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
with gviz.record(sys.argv[1], last=2) as recording:
    print("begun", flush=True)
    step = 0
    while True:
        step += 1
        (w * w).sum().backward()
        if step % 50 == 0:
            recording.flush()
            print(step, flush=True)
"""


@pytest.mark.parametrize("lines", [2, 5, 9])
def test_what_is_on_disk_is_whole_whenever_the_program_is_killed(tmp_path, lines):
    path = tmp_path / "last.gviz"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", FOREVER, str(path)], stdout=subprocess.PIPE, env=environment
    ) as process:
        list(islice(process.stdout, lines))
        process.send_signal(signal.SIGKILL)
    kept = gviz.load(path)
    assert trace_size(path) < 4 << 20
    moment = kept.at(len(kept))
    assert all(moment.states(kept.nodes))
    assert [kept.event(n) for n in range(1, len(kept) + 1)]


def test_who_follows_a_file_is_told_that_its_beginning_is_gone(tmp_path):
    path = tmp_path / "last.gviz"
    with gviz.record(path, last=1) as recording:
        training(1)
        recording.flush()
        followed = gviz.load(path)
        training(9)
        recording.flush()
        with pytest.raises(GvizError, match="has been dropped"):
            followed.refresh()


@pytest.mark.parametrize(
    ("last", "size", "expected"),
    [(3, None, Bounds(3)), ("4", None, Bounds(4)), ("2 marks", "500M", Bounds(2, "marks", 500 << 20)),
     ("1mark", "1.5g", Bounds(1, "marks", 3 << 29)), ("5 iterations", "2 MiB", Bounds(5, size=2 << 20))],
)  # fmt: skip
def test_bounds_are_written_as_people_write_them(last, size, expected):
    assert bounds(last, size) == expected


@pytest.mark.parametrize(
    ("last", "size"),
    [(0, None), ("-1", None), ("x", None), ("30s", None), ("2 s", None), (None, "12"), (None, "big")],
)
def test_bounds_that_mean_nothing_are_refused(last, size):
    with pytest.raises(GvizError):
        bounds(last, size)
