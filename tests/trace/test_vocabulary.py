"""Whatever an event class needs besides its declaration is there, or is named here as missing."""

import ast
from pathlib import Path

import pytest

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.file.snapshot import MATTERING
from gviz.trace.index import columns as index

PACKAGE = Path(e.__file__).parents[1]
SAID = [kind for kind in e.KINDS if kind not in e.DEFINITIONS]
CHANGING = [kind for kind in e.KINDS if kind.changes]
LASTING = e.changing("life", "value", "requires_grad", "grad", "saved")


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
    assert (kind.__name__ in matched("../tests/replay.py")) == bool(kind.changes)


@pytest.mark.parametrize("kind", CHANGING, ids=named)
def test_a_timeline_can_search_for_every_change(kind):
    listed = [*index._BY_NODE.values(), *index._BY_OUTPUT.values(), index._DECODED, index._CONTEXT]
    assert KIND_NUMBERS[kind] in {number for numbers in listed for number in numbers}


@pytest.mark.parametrize("kind", LASTING, ids=named)
def test_what_outlasts_a_pass_is_said_again_where_a_shortened_recording_begins(kind):
    assert kind in MATTERING
    assert kind.__name__ in matched("trace/file/snapshot.py")


@pytest.mark.parametrize("kind", e.KINDS, ids=named)
def test_an_event_says_what_it_means(kind):
    assert len(kind.__doc__) > 20
    assert set(kind.changes) <= set(e.Change.__args__)
