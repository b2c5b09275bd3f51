"""The report of the times of module calls, of iterations that are made up."""

from types import SimpleNamespace

from gviz.explain.module_times import MOST_CALLS, time_lines
from gviz.trace.timed_iterations import TimedCall, TimedIteration
from gviz.trace.whole_iterations import RecordedIterations


def test_calls_of_the_same_length_do_not_exceed_the_most_that_are_listed():
    layers = [TimedCall(f"net.{number}", "Linear", 0, 1000, 1000) for number in range(3 * MOST_CALLS)]
    calls = (TimedCall("net", "Sequential", -1, 0, 0), *layers, TimedCall("head", "Linear", -1, 5000, 5000))
    timed = TimedIteration(7, "cpu", 10**7, calls, 0, 0)
    timeline = SimpleNamespace(recorded_iterations=RecordedIterations(9, 1, (), (), (), timed_iterations=(timed,)))
    rows = [row.split() for row in time_lines(timeline, 100)]
    listed = [row[0] for row in rows if len(row) > 1 and row[1] in ("Linear", "Sequential")]
    assert listed == ["net", *(f"net.{number}" for number in range(MOST_CALLS - 2)), "head"]
    assert [f"{len(calls) - MOST_CALLS}", "shorter", "calls"] in [row[:3] for row in rows]
