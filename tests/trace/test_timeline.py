from histories import histories
from hypothesis import given, settings

from gviz.trace.log import MemoryLog
from gviz.trace.replay import replay
from gviz.trace.timeline import Timeline


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
