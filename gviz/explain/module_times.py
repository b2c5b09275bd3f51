"""The time of each module call, forward and backward, as the program takes without a recording.

A recording that pauses (`gviz monitor`) times some of the iterations between those that are recorded whole. Nothing
else is recorded in them; see `gviz.adapters.pytorch.iteration_timer`. The times of a recording's own events say nothing
about the program, because recording an operation takes longer than most operations.

If several timed iterations have the same calls, the time of a call is the median of its times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from gviz.trace.timed_iterations import TimedIteration
from gviz.trace.timeline import Timeline
from gviz.values.number_text import seconds_text
from gviz.values.plain_text import clipped, shown

MOST_CALLS = 200
"""The most calls that are listed: the longest ones, with those around them."""

_DEVICES = {"cpu": "the CPU", "cuda": "the device"}


@dataclass(frozen=True, slots=True)
class CallTime:
    """Nanoseconds of one module call: its own, and those of the calls inside it included. `depth` counts from 0."""

    path: str
    kind: str
    depth: int
    own: tuple[float, float]
    whole: tuple[float, float]

    @property
    def total(self) -> float:
        """Forward and backward, with the calls inside."""
        return sum(self.whole)


@dataclass(frozen=True, slots=True)
class ModuleTimes:
    """Medians over timed `iterations`, in nanoseconds: the calls in order, the backward rules outside of modules, the
    optimizer's steps, and the whole iteration.
    """

    iterations: tuple[int, ...]
    clock: str
    total: float
    calls: tuple[CallTime, ...]
    outside: float
    optimizer: float

    @property
    def rest(self) -> float:
        """What is left of the iteration: data, the loss, and Python outside of modules."""
        known = sum(call.total for call in self.calls if not call.depth) + self.outside + self.optimizer
        return max(self.total - known, 0.0)


def module_times(timeline: Timeline) -> ModuleTimes | None:
    """Return the times of the calls of the last timed iteration; None if no iteration was timed."""
    every = timeline.recorded_iterations.timed_iterations if timeline.recorded_iterations is not None else ()
    if not every:
        return None
    like = [one for one in every if _structure(one) == _structure(every[-1])]
    calls = every[-1].calls
    own = [
        (median([one.calls[at].forward for one in like]), median([one.calls[at].backward for one in like]))
        for at in range(len(calls))
    ]
    whole = [[*times] for times in own]
    for at in reversed(range(len(calls))):
        if calls[at].parent >= 0:
            whole[calls[at].parent][0] += whole[at][0]
            whole[calls[at].parent][1] += whole[at][1]
    depths: list[int] = []
    for call in calls:
        depths.append(depths[call.parent] + 1 if call.parent >= 0 else 0)
    rows = zip(calls, depths, own, whole, strict=True)
    return ModuleTimes(
        tuple(one.iteration for one in like),
        every[-1].clock,
        median([one.total for one in like]),
        tuple(
            CallTime(call.path, call.kind, depth, mine, (all_of[0], all_of[1])) for call, depth, mine, all_of in rows
        ),
        median([one.outside for one in like]),
        median([one.optimizer for one in like]),
    )


def _structure(one: TimedIteration) -> list[tuple[str, int]]:
    return [(call.path, call.parent) for call in one.calls]


def why_no_times(timeline: Timeline) -> str:
    """Return why a recording has no times, and how to get them."""
    if timeline.recorded_iterations is None or not timeline.recorded_iterations.paused:
        return (
            "this recording has no times of modules: recording an operation takes longer than most operations, so the "
            "times between its events are not those of the program. gviz monitor SCRIPT (PyTorch) times iterations in "
            "which it records nothing else."
        )
    return (
        "this recording has no times of modules: no iteration was timed. The run was too short for its budget, it "
        "called no module, or an older gviz recorded it."
    )


def time_lines(timeline: Timeline, width: int) -> Iterator[str]:
    """Yield the report as lines of text: a row for each module call, with its share of the iteration."""
    times = module_times(timeline)
    if times is None:
        yield why_no_times(timeline)
        return
    count = len(times.iterations)
    which = f"iteration {times.iterations[-1]:,}"
    if count > 1:
        which = f"an iteration (median of {count}: {', '.join(f'{number:,}' for number in times.iterations)})"
    yield f"{which} took {_text(times.total)} on {_DEVICES.get(times.clock, shown(times.clock))}"
    yield "nothing else was recorded in it; calling a module with hooks takes 5 to 10 µs more, which its time includes"
    yield ""
    listed = _listed(times.calls)
    room = max([*(2 * call.depth + len(shown(call.path)) for call in listed), len("the rest: data, loss, Python")])
    room = min(room, max(width - 58, 20))
    yield f"{'':<{room}}  {'class':<16} {'forward':>9} {'backward':>9} {'both':>9} {'share':>6}"
    for call in listed:
        name = clipped("  " * call.depth + shown(call.path), room)
        forward, backward = map(_text, call.whole)
        share = _share(call.total, times.total)
        kind = clipped(shown(call.kind), 16)
        yield f"{name:<{room}}  {kind:<16} {forward:>9} {backward:>9} {_text(call.total):>9} {share:>6}"
    if len(listed) < len(times.calls):
        yield f"{len(times.calls) - len(listed)} shorter calls are not listed; --format json has all"
    others = {
        "backward outside modules": times.outside,
        "optimizer": times.optimizer,
        "the rest: data, loss, Python": times.rest,
    }
    for name, took in others.items():
        yield f"{name:<{room}}  {'':<16} {'':>9} {'':>9} {_text(took):>9} {_share(took, times.total):>6}"


def _listed(calls: Sequence[CallTime]) -> list[CallTime]:
    if len(calls) <= MOST_CALLS:
        return [*calls]
    longest = sorted(range(len(calls)), key=lambda at: calls[at].total, reverse=True)[:MOST_CALLS]
    return [calls[at] for at in sorted(longest)]


def _text(nanoseconds: float) -> str:
    return seconds_text(nanoseconds / 1e9)


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.1f}%" if total else ""


def time_data(timeline: Timeline) -> dict[str, object]:
    """Return the report for programs, in nanoseconds."""
    times = module_times(timeline)
    if times is None:
        return {"why_not": why_no_times(timeline)}
    return {
        "iterations": times.iterations,
        "clock": times.clock,
        "total": times.total,
        "calls": [
            {
                "module": call.path, "class": call.kind, "depth": call.depth,
                "forward": call.whole[0], "backward": call.whole[1],
                "own_forward": call.own[0], "own_backward": call.own[1],
            }
            for call in times.calls
        ],
        "backward_outside_modules": times.outside,
        "optimizer": times.optimizer,
        "rest": times.rest,
    }  # fmt: skip
