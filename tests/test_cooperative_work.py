"""Work that is done a little at a time."""

from gviz.system import cooperative_work
from gviz.system.cooperative_work import AT_ONCE, WorkProgress, collected, finished, paced, parts


def counting(n):
    for i in range(n):
        yield WorkProgress("counting: thing", i, n)
        yield i


def test_how_far_it_is_can_be_read():
    assert str(WorkProgress("checking: unused losses,", 7, 23)) == "checking: unused losses, 7 of 23"
    assert (
        str(WorkProgress("looking for a stop: event", 12_288, 960_000)) == "looking for a stop: event 12,288 of 960,000"
    )


def test_what_is_found_is_collected_and_the_rest_told():
    work = collected(counting(2))
    assert [next(work), next(work)] == [WorkProgress("counting: thing", 0, 2), WorkProgress("counting: thing", 1, 2)]
    assert finished(work) == [0, 1]


def test_somebody_may_be_told_wherever_it_rests():
    said = []
    assert finished(collected(counting(2)), said.append) == [0, 1]
    assert said == [WorkProgress("counting: thing", 0, 2), WorkProgress("counting: thing", 1, 2)]


def test_it_rests_only_after_a_while(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(cooperative_work, "monotonic", lambda: next(clock))
    said = []
    assert finished(paced(collected(counting(9)), 3), said.append) == [*range(9)]
    assert [far.done for far in said] == [3, 7]
    assert finished(paced(collected(counting(2)), 100)) == [0, 1]


def test_parts_hold_everything_once_and_tell_how_much_was_before():
    things = list(range(2 * AT_ONCE + 1))
    found = list(parts(things, "thing"))
    assert found[::2] == [WorkProgress("thing", start, len(things)) for start in (0, AT_ONCE, 2 * AT_ONCE)]
    assert [one for part in found[1::2] for one in part] == things
    assert list(parts([], "thing")) == []
