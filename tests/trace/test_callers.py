"""The tree of callers finds what a search through all stacks finds, also as stacks come."""

from hypothesis import given
from hypothesis import strategies as st

from gviz.events import StackSeen
from gviz.site import Frame
from gviz.trace.log import MemoryLog
from gviz.trace.naming.callers import Callers

frames = st.integers(1, 3).map(lambda line: Frame("demo.py", "f", line, line, 0, 1))
stacks = st.lists(st.lists(frames, min_size=1, max_size=5).map(tuple), min_size=1, max_size=12)


@given(stacks, stacks)
def test_below_a_caller_is_what_ends_with_its_frames(first, later):
    log = MemoryLog([])
    callers = Callers(log)
    for number, stack in enumerate([*first, *later], 1):
        log.append(StackSeen(number, stack))
        if number in (1, len(first), len(first) + len(later)):
            for known, seen in log.stacks.items():
                for depth in range(len(seen)):
                    caller = seen[depth:]
                    found = [n for n, other in log.stacks.items() if other[-len(caller) :] == caller]
                    assert list(callers.below(callers.of(known, depth))) == found
                    assert callers.around(known, depth) == caller
