"""Run a function while listening: the shortest way from a program to its events, and to their timeline."""

from collections.abc import Callable
from pathlib import Path

from gviz import emit
from gviz.events import Event, StackSeen
from gviz.source.call_stack import Frame
from gviz.trace.event_log import MemoryLog
from gviz.trace.phases import PhaseTracker
from gviz.trace.stack_tree import Stacks
from gviz.trace.timeline import Timeline
from gviz.values.value import Keep

TESTS = str(Path(__file__).parent)


def events_of(program: Callable[[], object], *, limit: int = 1024, keep: Keep = "whole") -> list[Event]:
    log: list[Event] = []
    stacks = Stacks()

    def listen(event: Event) -> None:
        log.append(without_runner(event, stacks))

    channel = emit.Channel(listen, limit=limit, keep=keep, read_source=text_of)
    with emit.listening(channel):
        kept = program()  # what the program returns stays alive until the recording ends
    del kept
    return log


def timeline_of(program: Callable[[], object], *, limit: int = 1024, keep: Keep = "whole") -> Timeline:
    return Timeline(MemoryLog(events_of(program, limit=limit, keep=keep)))


def iterations_known(program: Callable[[], object]) -> list[int]:
    """How many iterations were known after each event, as often as there were others."""
    phase_tracker, known = PhaseTracker(), [1]
    for seq, event in enumerate(events_of(program), 1):
        phase_tracker.process(seq, event)
        if known[-1] != len(phase_tracker.iterations.starts):
            known.append(len(phase_tracker.iterations.starts))
    return known


def without_runner(event: Event, stacks: Stacks) -> Event:
    """The event without frames of whoever runs the tests, which differ between pytest and its workers.

    A stack is said whole; `stacks` are those that were said before.
    """
    match event:
        case StackSeen(stack=number):
            stacks.add(event)
            return StackSeen(number, tuple(filter(is_of_a_test, stacks[number])))
    return event


def is_of_a_test(frame: Frame) -> bool:
    return frame.path.startswith(TESTS) and frame.path != __file__


def text_of(path: str) -> str | None:
    """The source of a file, None for a frame that is of no file."""
    return Path(path).read_text() if Path(path).is_file() else None
