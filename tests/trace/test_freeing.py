"""A recording nobody looks at any more frees itself: it may be large, and the collector may come late or never."""

import weakref
from functools import cached_property

import pytest
from stories import demo

from gviz.trace.weak_cache import weak_method


def asked(timeline):
    """Everything is asked of it once."""
    for n in range(len(timeline) + 1):
        moment = timeline.at(n)
        for node in timeline.nodes:
            moment.state(node)
    for node in timeline.nodes:
        timeline.info(node)
        timeline.events_of(node)
    for asked in (timeline, timeline.nodes, timeline.contexts):
        for name in dir(type(asked)):
            if isinstance(getattr(type(asked), name), cached_property):
                getattr(asked, name)


@pytest.mark.usefixtures("no_collector")
def test_a_timeline_is_freed_with_the_last_who_has_it():
    timeline = demo()
    asked(timeline)
    held, states = weakref.ref(timeline), weakref.ref(timeline._states)
    del timeline
    assert held() is None
    assert states() is None


@pytest.mark.usefixtures("no_collector")
def test_a_moment_answers_on_when_its_timeline_is_gone():
    timeline = demo()
    node, moment = timeline.nodes[-1], timeline.at(len(timeline))
    expected = demo().at(moment.n).state(node)
    del timeline
    assert moment.state(node) == expected


def test_a_method_of_what_is_gone_says_so():
    names = demo()
    called = weak_method(names.info)
    assert called(1).node == 1
    del names
    with pytest.raises(ReferenceError, match="gone"):
        called(1)
