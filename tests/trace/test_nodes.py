"""The nodes of a log and the contexts of its moments, asked without a timeline."""

import pytest
from stories import demo_story, iterations

from gviz import events as e
from gviz.errors import GvizError
from gviz.trace.event_contexts import Contexts
from gviz.trace.event_log import MemoryLog
from gviz.trace.index.reference_checks import References
from gviz.trace.index.search_index import Index
from gviz.trace.node_table import Nodes


def asked(log, **about):
    index = Index()
    index.extend(log)
    return Nodes(log, index, References(log, index), Contexts(log, index), **about)


@pytest.fixture
def demo():
    return demo_story().events


def test_they_are_a_sequence_in_the_order_of_their_creation(demo):
    made = [event for event in demo if isinstance(event, e.NodeCreated)]
    alone = [event for event in demo if not isinstance(event, e.NodeCreated)]
    nodes = asked(MemoryLog([*alone, made[1], made[0], *made[2:]]))  # another thread was faster
    assert list(nodes) == [nodes[place] for place in range(len(nodes))] == [2, 1, 3, 4, 5]
    assert nodes[-1:] == [5]
    assert [nodes.place_of(node) for node in (2, 1, 6)] == [0, 1, -1]
    assert [node in nodes for node in (1, 6, "1")] == [True, False, False]


def test_they_say_from_what_they_were_made_and_into_what(demo):
    nodes = asked(MemoryLog(demo))
    assert [nodes.users(node) for node in nodes] == [(3, 4), (3,), (4, 5), (5,), ()]
    assert [nodes.users(1, nodes.born(node)) for node in nodes] == [(), (), (3,), (3, 4), (3, 4)]
    assert nodes.inputs_by_node == {3: [1, 2], 4: [1, 3], 5: [4, 3]}
    assert nodes.users_by_node == {1: [3, 4], 2: [3], 3: [4, 5], 4: [5]}
    assert dict(nodes.all_created([4, 9])) == {4: nodes.created(4)}
    with pytest.raises(GvizError, match="there is no node 9"):
        nodes.created(9)


def test_an_iteration_has_the_older_ones_it_uses():
    timeline = iterations(2)
    first, second = timeline.iterations
    assert (timeline.nodes.of(first), timeline.nodes.of(second)) == ((1, 2), (1, 3))


def test_the_name_the_program_gave_counts_more_than_the_variable(demo):
    without = [event for event in demo if not isinstance(event, e.Named)]
    assert [asked(MemoryLog(without)).name(node) for node in (3, 4, 5)] == ["a", "b", "loss"]
    log = MemoryLog([*without, e.Named(3, "product")])
    nodes = asked(log)
    assert (nodes.name(3), nodes.named, nodes.last_naming) == ("product", {3}, len(log))


def test_while_the_program_runs_its_last_statement_may_go_on(demo):
    first = next(place for place, event in enumerate(demo) if isinstance(event, e.Printed))
    log = MemoryLog(demo[:first])
    last = asked(log).born(5)
    assert (asked(log).open_from, asked(log, growing=True).open_from) == (0, last)
    log.append(e.Printed("stdout", "over"))
    assert asked(log, growing=True).open_from == 0


def test_a_moment_lies_in_a_module_call_and_a_rule_of_a_pass(demo):
    log = MemoryLog([e.ScopeEntered(7, 0, "net.fc", "Linear"), *demo, e.ScopeLeft(7)])
    index = Index()
    index.extend(log)
    contexts = Contexts(log, index)
    running = next(n for n in range(1, len(log) + 1) if isinstance(log.event(n), e.StepStarted))
    assert contexts.at(0) == contexts.at(len(log)) == (0, 0, 0)
    assert contexts.at(running) == (1, 5, 7)
    assert contexts.running(running) == (1,)
    assert contexts.scope_at(running) == (7, 1, len(log))
    assert [contexts.module(scope) for scope in (7, 8, 0)] == ["net.fc", "", ""]
