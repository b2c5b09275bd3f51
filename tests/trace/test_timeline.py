import os
import random
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from histories import ACTIONS, OPS, World, histories, tell, value
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import timeline_of
from replay import replay

import gviz
import gviz.engine as torch
from gviz import events as e
from gviz.engine import nn
from gviz.errors import GvizError
from gviz.system.cooperative_work import finished
from gviz.trace import timeline as timelines
from gviz.trace.event_log import MemoryLog
from gviz.trace.graph_state import Contribution, Iteration, Phase
from gviz.trace.index.backward_reach import seed_sum
from gviz.trace.index.change_lists import ChangeList
from gviz.trace.index.event_columns import distinct
from gviz.trace.timeline import Timeline, read_timeline
from gviz.values.value import Value


def assert_agrees(timeline, log):
    for n in range(len(log) + 1):
        states = replay(log, n)
        moment = timeline.at(n)
        assert {node: moment.state(node) for node in timeline.nodes} == {
            node: states.get(node) for node in timeline.nodes
        }, f"after event {n}"


@given(histories)
@settings(deadline=None, max_examples=60)
def test_every_moment_of_the_timeline_is_what_replay_says(events):
    log = MemoryLog(events)
    assert_agrees(Timeline(log), log)


@given(histories)
@settings(deadline=None, max_examples=60)
def test_so_is_every_moment_backwards_whoever_else_may_go_back_at_the_same_time(events):
    log = MemoryLog(events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gviz.trace.index.node_state.NodeStates._is_alone", lambda *moments: False)
        timeline = Timeline(log)
        for n in reversed(range(len(log) + 1)):
            states = replay(log, n)
            assert timeline.at(n).states(timeline.nodes) == [states.get(node) for node in timeline.nodes]


def test_passes_of_two_threads_at_once_are_told_apart():
    leaves = [e.NodeCreated(n, 1, "leaf", (), (e.Output(value(1.0), n),), (), True, "", 0, 0) for n in (1, 2)]
    op = e.NodeCreated(3, 2, "op", ((1, 0), (2, 0)), (e.Output(value(2.0), 3),), (), True, "", 0, 0)
    starts = [e.BackwardStarted(n, ((3, 0),), (value(1.0),), False, False, (), 0) for n in (1, 2)]
    flows = [e.GradFlowed(pass_nr, 3, 0, 1, 0, value(float(seq))) for seq, pass_nr in enumerate((1, 2, 1, 2, 1), 6)]
    after = [e.BackwardFinished(2), e.GradFlowed(1, 3, 1, 1, 0, value(12.0)), e.BackwardFinished(1)]
    log = MemoryLog([*OPS, *leaves, op, *starts, *flows, *after])
    assert_agrees(Timeline(log), log)
    parts = Timeline(log).at(len(log)).state(1).outputs[0].parts
    assert [part.seq for part in parts] == [6, 8, 10, 12]


def test_the_contributions_of_a_moment_are_a_sequence(shared_leaf):
    parts = Timeline(shared_leaf).at(7).state(1).outputs[0].parts
    assert len(parts) == 2
    assert parts[-1] == list(parts)[1] == parts[0:][1]
    assert parts[:1] == (parts[0],) != parts
    with pytest.raises(IndexError):
        parts[2]


QUESTIONS = (
    lambda timeline: list(timeline.nodes),
    lambda timeline: timeline.contexts.node_ends,
    *map(attrgetter, ("iterations", "phases", "marks", "failures", "errors")),
)


@pytest.mark.parametrize(
    ("question", "more"),
    [("failures", e.Failed("ValueError", "", 0, 0, "")), ("marks", e.Marked("here"))],
)  # fmt: skip
def test_an_answer_given_before_the_log_grew_is_given_anew(shared_leaf, question, more):
    timeline = Timeline(shared_leaf)
    before = getattr(timeline, question)
    shared_leaf.append(more)
    timeline.refresh()
    assert len(getattr(timeline, question)) == len(before) + 1


@pytest.mark.parametrize(
    ("seeds", "total"),
    [((value(1.0), value(2.5)), value(3.5)),
     ((Value("bfloat16", (), b"\x80\x3f"),) * 2, Value("bfloat16", ())),  # numpy cannot add these
     ((value(1.0), Value("float64", (1,))), Value("float64", (1,)))],
)  # fmt: skip
def test_a_root_given_twice_begins_with_the_sum_if_it_can_be_known(seeds, total):
    assert seed_sum(seeds, Value.array) == total


@given(histories, st.data())
@settings(deadline=None, max_examples=40)
def test_a_timeline_that_grew_with_its_log_is_like_one_made_at_the_end(events, data):
    log = MemoryLog()
    grown = Timeline(log)
    said = 0
    while said < len(events):
        more = data.draw(st.integers(1, 12))
        for event in events[said : said + more]:
            log.append(event)
        said += more
        grown.refresh()
        grown.at(len(grown)).states(grown.nodes)  # what was asked for early must not be answered stale later
        for question in QUESTIONS:
            question(grown)
    assert_agrees(grown, log)
    whole = Timeline(MemoryLog(events))
    for question in QUESTIONS:
        assert question(grown) == question(whole)
    for node in whole.nodes:
        assert grown.info(node) == whole.info(node)
        assert (grown.nodes.users(node), grown.events_of(node)) == (whole.nodes.users(node), whole.events_of(node))
    for n in range(len(whole) + 1):
        old, new = grown.at(n), whole.at(n)
        assert (old.pass_nr, old.step, old.scope, old.phase) == (new.pass_nr, new.step, new.scope, new.phase)
        assert (old.node, old.event, old.failed) == (new.node, new.event, new.failed)


def test_a_long_log_can_be_taken_in_piece_by_piece():
    log = MemoryLog([*OPS, *(e.Marked(str(n)) for n in range(10_000))])
    timeline = Timeline(log, seconds=0)
    assert 0 < len(timeline) < len(log)
    assert timeline.at(len(timeline)).event == e.Marked(str(len(timeline) - 1))
    while timeline.unprocessed:
        assert timeline.refresh(seconds=0)
    assert len(timeline.marks) == len(timeline) == len(log)
    assert not timeline.refresh(seconds=0)


def test_reading_a_long_log_yields_the_progress(monkeypatch):
    monkeypatch.setattr(timelines, "_READ_SECONDS", 0.0)
    log = MemoryLog([*OPS, *(e.Marked(str(n)) for n in range(3 * 4096 + 1))])  # the last step reads one event
    progress = []
    timeline = finished(read_timeline(log), progress.append)
    assert [far.total for far in progress] == [len(log)] * len(progress)
    assert 0 < progress[0].done < progress[-1].done < len(log)
    assert len(timeline) == len(timeline.marks) == len(log)
    assert str(progress[0]) == f"reading events: {progress[0].done:,} of {len(log):,}"
    assert [*read_timeline(MemoryLog([]))] == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6))), st.integers(1, 7), st.integers(0, 400))
@settings(deadline=None)
def test_change_lists_find_what_a_plain_search_finds(steps, batch, upto):
    seq, changes, plain, pending = 0, ChangeList(), [], []
    for key, distance in steps:
        seq += distance
        plain.append((key, seq))
        pending.append((key, seq))
        if len(pending) == batch:
            changes.add(*map(np.array, zip(*pending, strict=True)))
            pending = []
    if pending:
        changes.add(*map(np.array, zip(*pending, strict=True)))
    for key in range(7):
        seqs = [at for k, at in plain if k == key]
        before = [at for at in seqs if at <= upto]
        assert changes.of_key(key).tolist() == seqs
        assert changes.last(key, upto) == (before or [0])[-1]
        assert changes.between(key, 3, upto) == [at for at in seqs if 3 <= at < upto]
        assert changes.counts(np.array([key]), upto).tolist() == [len(before)]
    assert set(changes.keys_between(3, upto).tolist()) == {k for k, at in plain if 3 <= at < upto}


@pytest.fixture
def shared_leaf():
    """``x = 2.; y = x * x; y.backward()``, twice over the same graph."""
    number, double = value(2.0), value(4.0)
    return MemoryLog(
        [
            *OPS,
            e.NodeCreated(1, 1, "leaf", (), (e.Output(number, 1),), (), True, "", 0, 0),  # 1
            e.NodeCreated(2, 2, "op", ((1, 0), (1, 0)), (e.Output(double, 2),), (), True, "", 0, 0),
            e.BackwardStarted(1, ((2, 0),), (value(1.0),), True, False, (), 0),  # 3
            e.StepStarted(1, 2, (value(1.0),)),
            e.GradFlowed(1, 2, 0, 1, 0, number),  # 5
            e.GradFlowed(1, 2, 1, 1, 0, number, double),
            e.StepFinished(1, 2),  # 7
            e.GradAccumulated(1, 1, double),
            e.BackwardFinished(1),  # 9
            e.BackwardStarted(2, ((2, 0),), (value(1.0),), False, False, (), 0),  # 10
            e.StepStarted(2, 2, (value(1.0),)),
            e.GradFlowed(2, 2, 0, 1, 0, number),  # 12
            e.GradFlowed(2, 2, 1, 1, 0, number, double),
            e.SavedFreed(2),  # 14
            e.StepFinished(2, 2),
            e.GradAccumulated(2, 1, double, value(8.0)),  # 16
            e.BackwardFinished(2),
        ]
    )


def test_a_leaf_shows_what_arrives_beside_its_old_grad_until_it_is_accumulated(shared_leaf):
    timeline = Timeline(shared_leaf)
    (first,) = timeline.at(5).state(1).outputs
    assert first.incoming == value(2.0)
    assert (first.expected, first.grad) == (2, None)
    assert first.parts == (Contribution(2, 0, value(2.0), 5),)
    (second,) = timeline.at(12).state(1).outputs
    assert (len(second.parts), second.grad, second.grad_seq) == (1, value(4.0), 8)
    (after,) = timeline.at(16).state(1).outputs
    assert (after.incoming, after.grad, after.grad_seq) == (value(4.0), value(8.0), 16)


def test_what_a_hook_gives_replaces_what_has_arrived(shared_leaf):
    events = [shared_leaf.event(n) for n in range(1, 7)]
    tenfold = e.HookRan(1, 1, 0, "tensor", "hook", value(40.0))
    later = e.HookRan(1, 1, 0, "post", "hook", value(7.0))
    log = MemoryLog([*OPS, *events, e.HookRan(1, 1, 0, "tensor", "hook", None), tenfold, later])
    incoming = [Timeline(log).at(n).state(1).outputs[0].incoming for n in (6, 7, 8, 9)]
    assert incoming == [value(4.0), value(4.0), value(40.0), value(40.0)]
    assert [replay(log, n)[1].outputs[0].incoming for n in (6, 7, 8, 9)] == incoming
    assert len(Timeline(log).at(8).state(1).outputs[0].parts) == 2
    assert Timeline(log).at(8).state(1).step == "running"


def test_the_steps_of_a_pass(shared_leaf):
    timeline = Timeline(shared_leaf)
    leaf = [timeline.at(n).state(1).step for n in range(2, 10)]
    assert leaf == ["none", "pending", "pending", "waiting", "running", "running", "done", "done"]
    op = [timeline.at(n).state(2).step for n in range(2, 9)]
    assert op == ["none", "waiting", "running", "running", "running", "done", "done"]
    assert [timeline.at(n).step for n in range(2, 9)] == [0, 0, 2, 2, 2, 0, 0]
    assert [timeline.at(n).pass_nr for n in (2, 3, 8, 9, 10)] == [0, 1, 1, 0, 2]


def test_who_acts_is_who_sends_else_whom_the_event_concerns_else_whose_rule_runs(shared_leaf):
    timeline = Timeline(shared_leaf)
    assert [timeline.at(n).actor for n in range(10)] == [0, 1, 2, 2, 2, 2, 2, 2, 1, 0]
    assert timeline.at(5).node == 1


def test_who_acts_while_a_rule_speaks(shared_leaf):
    speaking = MemoryLog([*OPS, *(shared_leaf.event(n) for n in range(1, 5)), e.Printed("stdout", "text")])
    assert (Timeline(speaking).at(5).node, Timeline(speaking).at(5).actor) == (0, 2)


def test_the_root_of_a_pass_has_its_seed_as_incoming(shared_leaf):
    (root,) = Timeline(shared_leaf).at(3).state(2).outputs
    assert root.incoming == value(1.0)
    assert root.parts == (Contribution(0, 0, value(1.0), 3),)
    assert root.expected == 1


def test_saved_tensors_are_held_until_they_are_freed(shared_leaf):
    timeline = Timeline(shared_leaf)
    assert [timeline.at(n).state(2).saved for n in (2, 9, 13, 14)] == ["held", "held", "held", "freed"]
    assert timeline.at(14).state(2).saved_freed == 14
    assert timeline.at(14).state(1).saved == "nothing"


@pytest.mark.parametrize(("switched", "expected"), [((), 1), ((False,), 0), ((False, True), 1)])
def test_a_leaf_that_does_not_require_a_gradient_expects_none(shared_leaf, switched, expected):
    number = value(1.0)
    root = e.NodeCreated(2, 3, "op", ((1, 0),), (e.Output(number, 2),), (), True, "", 0, 0)
    switches = [e.RequiresGradSet(1, on) for on in switched]
    started = e.BackwardStarted(1, ((2, 0),), (number,), False, False, (), 0)
    log = MemoryLog([*OPS, shared_leaf.event(1), *switches, root, started])
    state = Timeline(log).at(len(log)).state(1)
    assert state == replay(log, len(log))[1]
    assert (state.outputs[0].expected, state.step) == (expected, "pending" if expected else "none")


def test_an_output_of_whole_numbers_expects_no_gradient():
    whole = e.NodeCreated(1, 1, "leaf", (), (e.Output(value(1, dtype="int64"), 1),), (), False, "", 0, 0)
    root = e.NodeCreated(2, 3, "op", ((1, 0),), (e.Output(value(1.0), 2),), (), True, "", 0, 0)
    started = e.BackwardStarted(1, ((2, 0),), (value(1.0),), False, False, (), 0)
    log = MemoryLog([*OPS, whole, e.RequiresGradSet(1, True), root, started])
    assert Timeline(log).at(4).state(1).outputs[0].expected == 0


def test_a_view_has_the_value_of_its_memory():
    base = value(*range(6))
    made = e.Output(Value("float64", (2, 3), base.data), 1)
    column = e.Output(value(1.0, 4.0), 1, 0, 1, 1, (3,))
    log = MemoryLog(
        [
            *OPS,
            e.NodeCreated(1, 1, "leaf", (), (made,), (), False, "", 0, 0),
            e.NodeCreated(2, 3, "op", ((1, 0),), (column,), (), False, "inputs", 0, 0),
            e.StorageWritten(1, 2, 1, value(*range(10, 16))),
        ]
    )
    before, after = Timeline(log).at(2).state(2).outputs[0], Timeline(log).at(3).state(2).outputs[0]
    assert before.value.array().tolist() == [1, 4]
    assert after.value.array().tolist() == [11, 14]
    assert (after.value_seq, after.version, after.written_by) == (3, 1, 2)
    assert Timeline(log).at(3).state(1).outputs[0].value.array().tolist() == [[10, 11, 12], [13, 14, 15]]


def test_a_view_that_claims_more_than_its_memory_has_no_elements():
    for offset, strides, shape in ((5, (1,), (3,)), (0, (1,), (7,)), (0, (0,), (1 << 40,)), (0, (1, 1), (3,))):
        whole = e.Output(value(*range(6)), 1)
        wrong = e.Output(Value("float64", shape), 1, 0, 1, offset, strides)
        log = MemoryLog(
            [
                *OPS,
                e.NodeCreated(1, 1, "leaf", (), (whole,), (), False, "", 0, 0),
                e.NodeCreated(2, 3, "op", ((1, 0),), (wrong,), (), False, "inputs", 0, 0),
                e.StorageWritten(1, 1, 1, value(*range(6))),
            ]
        )
        assert Timeline(log).at(3).state(2).outputs[0].value.data is None


def training(world, steps):
    world.leaf(1, 1, 0)
    for _ in range(steps):
        world.op(0, 0, 1)
        root = len(world.created)
        world.say(e.BackwardStarted(world.passes + 1, ((root, 0),), (value(1.0),), False, False, (), 0))
        world.passes += 1
        world.say(e.BackwardFinished(world.passes))
        world.make("op", 3, ((1, 0),), (world.plain(1),), requires_grad=False, untracked="no_grad")
        world.say(e.StorageWritten(1, root, 1, value(1.0, 2.0, 3.0)))
        world.say(e.OptimizerStepped("SGD", (1,), 0))
        world.say(e.NodeFreed(root))
    return Timeline(MemoryLog(world.log))


def test_iterations_and_phases_of_a_training_loop():
    timeline = training(World(), 2)
    assert timeline.iterations == (Iteration(0, 1, 8), Iteration(1, 9, 15))
    assert timeline.phases == (
        Phase("forward", 1, 2, 0), Phase("backward", 3, 4, 1), Phase("after backward", 5, 5, 0),
        Phase("optimizer", 6, 8, 0), Phase("forward", 9, 9, 0), Phase("backward", 10, 11, 2),
        Phase("after backward", 12, 12, 0), Phase("optimizer", 13, 15, 0),
    )  # fmt: skip
    assert timeline.nodes.of(timeline.iterations[0]) == (1, 2, 3)
    assert timeline.nodes.of(timeline.iterations[1]) == (1, 4, 5)
    assert [timeline.info(node).iteration for node in timeline.nodes] == [0, 0, 0, 1, 1]
    assert timeline.iteration_at(0) == timeline.iterations[0]
    assert timeline.phase_at(0) is None
    assert timeline.nodes.users(1) == (2, 3, 4, 5)


def test_an_iteration_begins_with_the_module_call_that_makes_its_first_node():
    def train():
        net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.ones(1, 2)
        for _ in range(3):
            net(x).sum().backward()
            optimizer.step()
            with torch.no_grad():
                net(x)

    timeline = timeline_of(train)
    starts = [iteration.start for iteration in timeline.iterations]
    calls = [n for n, event in timeline.select([e.ScopeEntered]) if not event.parent]
    assert starts == [1, calls[2], calls[4]]


def test_a_second_pass_over_the_same_graph_is_the_same_iteration(shared_leaf):
    timeline = Timeline(shared_leaf)
    assert len(timeline.iterations) == 1
    assert [phase.pass_nr for phase in timeline.phases] == [0, 1, 2]


def test_an_empty_log_has_one_moment():
    timeline = Timeline(MemoryLog())
    moment = timeline.at(0)
    assert (len(timeline), moment.event, moment.state(1), list(timeline.nodes)) == (0, None, None, [])
    assert timeline.iteration_at(0) == Iteration(0, 1, 0)
    assert timeline.error_index.first_bad() == 0
    with pytest.raises(GvizError, match="there is no node 1"):
        timeline.info(1)


def test_a_node_is_in_its_timeline(shared_leaf):
    timeline = Timeline(shared_leaf)
    there = [node in timeline.nodes for node in (-1, 0, 1, 2, 3, "x", None)]
    assert there == [False, False, True, True, False, False, False]


def test_the_first_nan_is_found_wherever_it_is():
    draw = random.Random(3)
    events = tell([(draw.choice(ACTIONS), *(draw.randrange(41) for _ in range(3))) for _ in range(200)])
    log = MemoryLog(events)
    timeline = Timeline(log)
    assert timeline.error_index.first_bad() == 0
    log.append(e.GradSet(1, 0, "assigned", Value("bfloat16", (1,), b"\xc0\x7f")))
    log.append(e.GradSet(1, 0, "assigned", value(np.inf)))
    timeline.refresh()
    assert timeline.error_index.first_bad() == len(timeline) - 1


def test_a_full_memory_of_answers_keeps_those_that_are_asked_for(shared_leaf, monkeypatch):
    monkeypatch.setattr("gviz.trace.index.node_state._KEPT_STATES", 2)
    timeline = Timeline(shared_leaf)
    for n in range(len(timeline) + 1):
        states = replay(shared_leaf, n)
        assert timeline.at(n).states(timeline.nodes) == [states.get(node) for node in timeline.nodes]


@given(st.lists(st.integers(0, 50)))
def test_distinct_numbers_of_a_column_are_those_of_numpy(numbers):
    column = np.array(numbers, np.int64)
    assert np.array_equal(distinct(column), np.unique(column))


def test_opening_a_trace_imports_no_masked_arrays(tmp_path):
    with gviz.record(tmp_path / "t.gviz"):
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
    code = (
        "import sys, gviz.trace\n"
        "timeline = gviz.trace.load('t.gviz')\n"
        "print(len(timeline.iterations), timeline.at(len(timeline)).phase.kind, len(timeline.nodes))\n"
        "print('numpy.ma' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(Path(gviz.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "False", done.stdout
