"""Whatever an event class needs besides its declaration is there, or is named here as missing.

A meaning that is written a second time does not follow the table of `gviz.events.event_effects`. So a program here adds
event classes to the table, and everything that answers questions about state must know them without a line of its own.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.file.snapshot import MATTERING
from gviz.trace.index import search_index as index

PACKAGE = Path(e.__file__).parents[1]
SAID = [kind for kind in e.KINDS if kind not in e.DEFINITIONS]
REPLAYED = e.changing(*set(e.Cell.__args__) - {"name", "part", "call", "call_end", "op", "stack", "source"})
"""The events that change the state of nodes, which is what the replay of the tests keeps."""

OWN = {
    "trace/index/search_index.py": {
        "NodeCreated": "fills the tables of edges and origins",
        **dict.fromkeys(("StepStarted", "StepFinished", "GradFlowed", "SavedFreed", "NodeFreed"), "too many to list"),
    },
    "trace/index/node_state.py": {
        "NodeCreated": "a node's state begins with it",
        "GradFlowed": "a contribution is this event",
        "BackwardStarted": "its roots and inputs determine what a pass reaches",
    },
    "trace/index/threads.py": {},
    "trace/index/reference_checks.py": {
        "NodeCreated": "its inputs must be older than itself",
        "GradFlowed": "its slot must be an input of its source",
    },
    "trace/file/snapshot.py": {
        **dict.fromkeys(("NodeCreated", "StorageWritten", "DataSet"), "lose their references to freed nodes"),
        "GradSet": "stands for any other change of .grad",
        "ScopeEntered": "names the call around it",
    },
    "trace/file/ring_buffer.py": {
        "Marked": "a part of a run may begin with it, and an alarm is kept",
        "NodeCreated": "numbers of storages that are in use",
        "Failed": "is kept",
        "BackwardStarted": "the first pass after an alarm is kept",
    },
    "live/node_cache.py": {"NodeCreated": "is kept by kind", "OpSeen": "is kept", "StackSeen": "is kept"},
}
"""The files that derive from the table, and the event classes that they may name, with the reason."""


def matched(path):
    """The names of the classes that a file's ``match`` statements know."""
    patterns = (
        node.cls for node in ast.walk(ast.parse((PACKAGE / path).read_text())) if isinstance(node, ast.MatchClass)
    )
    return {ast.unparse(pattern).removeprefix("e.") for pattern in patterns}


def named(kind):
    return kind.__name__


@pytest.mark.parametrize("kind", SAID, ids=named)
def test_a_reader_is_told_what_every_event_means(kind):
    assert kind.__name__ in matched("explain/event_description.py")


@pytest.mark.parametrize("kind", SAID, ids=named)
def test_replay_knows_the_events_that_change_something_and_no_others(kind):
    assert (kind.__name__ in matched("../tests/replay.py")) == (kind in REPLAYED)


def test_the_table_has_every_event_and_every_cell():
    assert e.EFFECTS.keys() == set(e.KINDS)
    assert {effect.cell for effects in e.EFFECTS.values() for effect in effects} == set(e.Cell.__args__)


@pytest.mark.parametrize("kind", SAID, ids=named)
def test_a_timeline_can_search_for_every_effect(kind):
    listed = {cell for cells in index.LISTED.values() for cell in cells} | {"rule", "rule_end"}
    assert {effect.cell for effect in e.EFFECTS[kind]} <= listed
    in_columns = any(KIND_NUMBERS[kind] in numbers for numbers in index._IN_COLUMNS.values())
    assert (in_columns or kind in index._IN_EVENTS) == bool(e.EFFECTS[kind])


@pytest.mark.parametrize("kind", e.changing(*e.LASTING), ids=named)
def test_what_outlasts_a_pass_is_said_again_where_a_shortened_recording_begins(kind):
    assert kind in MATTERING


@pytest.mark.parametrize("path", OWN)
def test_no_file_that_derives_from_the_table_gives_an_event_a_meaning_of_its_own(path):
    tree = ast.parse((PACKAGE / path).read_text())
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert names & {kind.__name__ for kind in e.KINDS} == set(OWN[path])


MORE_EVENTS = """
import numpy as np
from gviz import events as e
from gviz.events import event_effects as effects
from gviz.events.event import Count, Event
from gviz.values.value import Value, capture

class Doubled(Event, frozen=True):
    of: tuple[int, int]
    number: Value

class Switched(Event, frozen=True):
    leaf: Count

class Poured(Event, frozen=True):
    into: Count
    number: Value

class Called(Event, frozen=True):
    number: Count

def add(kind, *made):
    e.KINDS = (*e.KINDS, kind)
    e.EFFECTS[kind] = made

add(Doubled, effects.Effect("grad", lambda event: ((event.of, event.number),)))
add(Switched, effects.Effect("requires_grad", lambda event: ((event.leaf, True),)))
add(Poured, effects.Effect("memory", lambda event: ((event.into, e.WrittenMemory(event.number, 7, 0)),)))
add(Called, effects.Effect("call", lambda event: ((event.number, ("net.extra", 0)),)))

from gviz.live.node_cache import LEARNED_FROM, NodeCache
from gviz.trace.file.snapshot import MATTERING, Snapshot
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

def number(value):
    return capture(np.array([value], np.float32))

leaf = e.NodeCreated(1, 1, "leaf", (), (e.Output(number(1), 1),), (), False, "", 0, 0)
events = [leaf, Doubled((1, 0), number(2)), Switched(1), Poured(1, number(3)), Called(1)]
timeline = Timeline(MemoryLog(events[:-1]))
for n in (1, len(timeline)):
    state = timeline.at(n).state(1)
    output = state.outputs[0]
    print(state.requires_grad, output.grad and output.grad.array(), output.value.array(), output.version)

snapshot, cache = Snapshot(), NodeCache()
cache.keep_values = True
for event in events:
    assert type(event) in MATTERING
    snapshot.process(event)
    if type(event) in LEARNED_FROM:
        cache.learn(event)
print(*(type(event).__name__ for event in snapshot.as_events()))
print(snapshot.as_events()[0].outputs[0].value.array())
print(cache.value(1).array(), cache.scopes)
"""


def test_an_event_that_is_only_in_the_table_changes_the_timeline_the_snapshot_and_the_live_facts():
    ran = subprocess.run([sys.executable, "-c", MORE_EVENTS], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "False None [1.] 0",
        "True [2.] [3.] 7",
        "NodeCreated GradSet Switched Called",
        "[3.]",
        "[3.] {1: 'net.extra'}",
    ]


@pytest.mark.parametrize("kind", e.KINDS, ids=named)
def test_an_event_says_what_it_means(kind):
    assert len(kind.__doc__) > 20
