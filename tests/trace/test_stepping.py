import numpy as np
import pytest
from histories import OPS, World, histories, tell, value
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import timeline_of

import gviz.engine as torch
from gviz import events as e
from gviz.events import NodeFreed
from gviz.explain.event_description import sentence
from gviz.query.moments import event_at
from gviz.trace import iteration_and_phase_ends, stepping
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

FORWARD = ("step", "next_node", "finish", "phase", "continue_", "end")
BACK = ("reverse_step", "reverse_next_node", "reverse_finish", "reverse_phase", "reverse_continue", "start")
laws = settings(deadline=None, max_examples=40)


@given(histories)
@laws
def test_stepping_there_and_back_changes_nothing_away_from_the_ends(events):
    timeline = Timeline(MemoryLog(events))
    for n in range(1, len(timeline)):
        assert stepping.reverse_step(timeline, stepping.step(timeline, n)) == n
        assert stepping.step(timeline, stepping.reverse_step(timeline, n)) == n


@given(histories)
@laws
def test_a_whole_node_there_and_back_changes_nothing_from_the_ends_of_nodes(events):
    timeline = Timeline(MemoryLog(events))
    ends = [n for n in timeline.contexts.node_ends if n < len(timeline)]
    for n in ends[:-1]:
        assert stepping.reverse_next_node(timeline, stepping.next_node(timeline, n)) == n
    for n in ends[1:]:
        assert stepping.next_node(timeline, stepping.reverse_next_node(timeline, n)) == n


@given(histories, st.sampled_from(FORWARD + BACK))
@laws
def test_every_move_goes_its_way_and_stops_at_the_ends(events, name):
    timeline, move = Timeline(MemoryLog(events)), getattr(stepping, name)
    for n in range(len(timeline) + 1):
        there = move(timeline, n)
        if name in FORWARD:
            assert n < there <= len(timeline) or there == n == len(timeline)
        else:
            assert 0 <= there < n or there == n == 0


@given(histories)
@laws
def test_going_to_a_node_stops_at_its_events_only(events):
    timeline = Timeline(MemoryLog(events))
    for node in timeline.nodes:
        n, seen = 0, []
        while (there := stepping.to_node(timeline, n, node)) != n:
            seen.append(there)
            n = there
        assert seen == list(timeline.events_of(node))
        assert stepping.reverse_to_node(timeline, n, node) == (seen[-2] if len(seen) > 1 else n)


def test_next_takes_a_backward_step_with_all_its_contributions_as_one():
    events = tell([("leaf", 1, 0, 0), ("op", 0, 0, 1), ("backward", 1, 0, 0)])
    timeline = Timeline(MemoryLog(events))
    stops, n = [], 0
    while (there := stepping.next_node(timeline, n)) != n:
        stops.append(type(timeline.event(there)).__name__)
        n = there
    assert stops == ["NodeCreated", "NodeCreated", "StepFinished", "GradAccumulated", "BackwardFinished"]


@pytest.fixture
def in_a_module():
    world = World()
    world.leaf(1, 0, 0)
    world.say(e.ScopeEntered(1, 0, "net", "Sequential"))
    world.say(e.ScopeEntered(2, 1, "net.0", "Linear"))
    world.op(0, 0, 1)
    world.say(e.ScopeLeft(2))
    world.op(1, 0, 1)
    world.say(e.ScopeLeft(1))
    world.op(2, 0, 1)
    return Timeline(MemoryLog(world.log))


def test_finish_goes_to_the_end_of_the_module_call_and_then_of_the_one_around_it(in_a_module):
    assert stepping.finish(in_a_module, 3) == 5
    assert stepping.finish(in_a_module, 5) == 7
    assert stepping.finish(in_a_module, 7) == 8
    assert in_a_module.at(4).scope == "net.0"
    assert in_a_module.at(5).scope == "net"


def test_reverse_finish_goes_to_the_start_of_the_module_call_and_then_of_the_one_around_it(in_a_module):
    assert stepping.reverse_finish(in_a_module, 4) == 3
    assert stepping.reverse_finish(in_a_module, 3) == 2
    assert stepping.reverse_finish(in_a_module, 2) == 1


def test_continue_stops_at_marks_the_first_nan_and_failures():
    world = World()
    world.leaf(1, 0, 0)
    world.say(e.Marked("epoch 1"))
    world.say(e.GradSet(1, 0, "assigned", value(1.0, np.nan)))
    world.say(e.GradSet(1, 0, "assigned", value(np.inf)))
    world.say(e.Failed("ValueError", "no", 0, 0, ""))
    timeline = Timeline(MemoryLog([*OPS, *world.log]))
    assert stepping.stops(timeline) == [2, 3, 5]
    assert stepping.continue_(timeline, 0) == 2
    assert stepping.reverse_continue(timeline, 5) == 3
    assert timeline.at(4).failed is None
    assert timeline.at(5).failed.message == "no"


def test_a_step_passes_what_only_says_which_variable_holds_what():
    world = World()
    world.leaf(1, 0, 0)
    world.say(e.VariableHeld("w", 1, "", "<module>"))
    world.say(e.VariableHeld("weights[0]", 1, "", "<module>"))
    world.op(0, 0, 1)
    world.say(e.VariableHeld("last", 1, "", "<module>"))
    timeline = Timeline(MemoryLog(world.log))
    spoken = [n for n in range(1, len(timeline) + 1) if not isinstance(timeline.event(n), e.VariableHeld)]
    stops, n = [], 0
    while (there := stepping.step(timeline, n)) != n:
        stops.append(n := there)
    assert stops == [*spoken, len(timeline)], "the end of a recording is a stop"
    back = []
    while (there := stepping.reverse_step(timeline, n)) != n:
        back.append(n := there)
    assert back == [*reversed(spoken), 0]


def loops_with_a_loss_each():
    w = torch.ones(2, requires_grad=True)
    for times in (2.0, 3.0, 4.0):
        loss = (w * times).sum()
        loss.backward()


def test_a_forward_ends_at_its_loss_and_not_where_the_last_graph_is_freed():
    timeline = timeline_of(loops_with_a_loss_each)
    forwards = [phase for phase in timeline.phases if phase.kind == "forward"]
    assert [isinstance(timeline.event(phase.end), NodeFreed) for phase in forwards] == [False, True, True]
    for phase in forwards:
        end = iteration_and_phase_ends.phase_end(timeline, phase)
        assert timeline.info(timeline.at(end).actor).name == "loss"
        assert event_at(timeline, "forward", phase.start) == end


def test_a_node_of_an_earlier_graph_that_is_freed_has_its_iteration():
    timeline = timeline_of(loops_with_a_loss_each)
    freed = next(n for n, event in timeline.select((NodeFreed,)) if timeline.iteration_at(n).index == 1)
    assert "from iteration 1: nothing refers to it any more" in sentence(timeline, freed)
