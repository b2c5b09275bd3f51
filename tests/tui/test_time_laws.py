"""The laws of time, over generated programs: what goes forward comes back, and all ways to a moment agree."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recording import events_of
from stories import Story

import gviz.engine as torch
from gviz.events import NodeFreed
from gviz.query_syntax.stop_condition import stop
from gviz.trace import stepping
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.cursor import Cursor

PLACES = ("x", "n2", "mul", "add", "on backward", "on accumulate", "on free", "change x.grad", "demo.py:3",
          "on forward if value > 0", "mul if norm(value) > 2 and node % 2 == 0")  # fmt: skip
laws = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def programs(draw):
    """A scalar graph of up to eight operations, with one to three backward passes."""
    story = Story()
    nodes = [story.leaf(name, draw(st.integers(-3, 3)), line) for line, name in ((3, "x"), (4, "w"))]
    for at in range(draw(st.integers(1, 8))):
        make = story.mul if draw(st.booleans()) else story.add
        name = f"n{at}" if draw(st.booleans()) else ""
        nodes.append(make(name, draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes)), 5 + at % 2))
    for pass_nr in range(1, draw(st.integers(1, 3)) + 1):
        story.backward(draw(st.sampled_from(nodes[2:])), 9, pass_nr)
    return story.timeline()


def ended(cursor):
    return cursor.position in (0, len(cursor.timeline))


@given(programs(), st.data())
@laws
def test_an_event_forward_and_back_is_where_one_was(timeline, data):
    n = data.draw(st.integers(0, len(timeline) - 1))
    assert stepping.reverse_step(timeline, stepping.step(timeline, n)) == n
    assert stepping.step(timeline, stepping.reverse_step(timeline, n + 1)) == n + 1


@given(programs())
@laws
def test_a_node_forward_and_back_is_where_one_was_from_the_ends_of_nodes(timeline):
    ends = [0]
    while (following := stepping.next_node(timeline, ends[-1])) != ends[-1]:
        ends.append(following)
    for before, after in pairwise(ends):
        assert stepping.reverse_next_node(timeline, after) == before


@given(programs(), st.data())
@laws
def test_goto_is_so_many_steps(timeline, data):
    n = data.draw(st.integers(0, len(timeline)))
    walked, jumped = Cursor(timeline, 0), Cursor(timeline, 0)
    walked.travel(stepping.step, "step", n)
    jumped.goto(str(n))
    assert walked.position == jumped.position == n
    nodes = list(timeline.nodes)
    assert timeline.at(walked.position).states(nodes) == timeline.at(jumped.position).states(nodes)
    assert jumped.back().position == 0


@given(programs())
@settings(laws, max_examples=10)
def test_a_moment_looks_at_the_same_node_wherever_one_comes_from(timeline):
    walked = Cursor(timeline, 0)
    for n in range(1, len(timeline) + 1):
        walked.travel(stepping.step, "step")
        for start in range(1, len(timeline) + 1):
            jumped = Cursor(timeline, start)
            jumped.goto(str(n))
            assert jumped.selected == walked.selected or abs(n - start) <= 1


def test_what_goes_while_the_next_graph_is_built_is_not_looked_at():
    """A loop lets go of its old loss when it has the new one."""

    def program():
        w = torch.tensor(1.0, requires_grad=True)
        for _ in range(2):
            loss = w * w
            loss.backward()

    timeline = Timeline(MemoryLog(list(events_of(program))))
    old, new = (node for node in timeline.nodes if timeline.info(node).name == "loss")
    (gone,) = (n for n, event in timeline.select((NodeFreed,)) if event.node == old)
    assert timeline.iteration_at(gone).index == 1
    for start in (0, gone - 1, len(timeline)):
        cursor = Cursor(timeline, start)
        cursor.goto(str(gone))
        assert cursor.selected == new


@given(programs(), st.lists(st.sampled_from(PLACES), min_size=1, max_size=3))
@laws
def test_running_on_meets_the_same_stops_both_ways(timeline, places):
    def met(start, *, backward):
        cursor, found = Cursor(timeline, start), []
        for place in places:
            cursor.breakpoints.add(stop(place))
        while not ended(cursor) or cursor.position == start:
            before = cursor.position
            cursor_stop = cursor.run_to_stop(backward=backward)
            if cursor_stop.position == before:
                break
            found.append(cursor_stop.position)
        return found

    forward, backward = met(0, backward=False), met(len(timeline), backward=True)
    assert [n for n in forward if n < len(timeline)] == [n for n in reversed(backward) if n]


@given(programs(), st.sampled_from(PLACES), st.integers(1, 4))
@laws
def test_a_count_is_so_many_times(timeline, place, count):
    at_once, one_by_one = Cursor(timeline, 0), Cursor(timeline, 0)
    for cursor in (at_once, one_by_one):
        cursor.breakpoints.add(stop(place))
    at_once.run_to_stop(count)
    for _ in range(count):
        one_by_one.run_to_stop()
    assert at_once.position == one_by_one.position


@pytest.mark.parametrize("backward", [False, True])
@given(timeline=programs())
@laws
def test_a_breakpoint_with_a_condition_meets_what_one_without_meets_and_it_holds_for(backward, timeline):
    free, bound = Cursor(timeline, 0).breakpoints, Cursor(timeline, 0).breakpoints
    all_of_them = free.add(stop("on backward")).hits
    some = bound.add(stop("on backward if node % 2 == 0")).hits
    start = len(timeline) + 1 if backward else 0
    every = list(all_of_them.before(start) if backward else all_of_them.after(start))
    even = [hit.n for hit in every if timeline.at(hit.n).node % 2 == 0]
    assert [hit.n for hit in (some.before(start) if backward else some.after(start))] == even
