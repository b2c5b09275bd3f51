"""The recording in progress. Without one, each place that could emit an event costs one test of a module global.

A `Channel` is one recording. It has the listener and hands out all numbers, so two recordings of one program read the
same. Instrumented code tests ``emit.channel`` before it builds anything:

    channel = emit.channel
    if channel is not None:
        channel.emit(NodeFreed(node))

An error in a listener propagates to the program: a recorder that fails silently is worse than none. Destructors may run
anywhere, even inside a listener, so the end of a `Seen` is only queued, and the next event drains the queue. No Python
code runs in a destructor: a signal handler may run with it, and its exception, perhaps a KeyboardInterrupt, would be
dropped.
"""

from __future__ import annotations

import os
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from threading import RLock, get_ident
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from gviz.errors import GvizError
from gviz.events import Event, NodeFreed, OpSeen, SourceSeen, StackSeen
from gviz.events.optimizer_options import Earlier
from gviz.source import call_stack
from gviz.values.value import FEW_BYTES, INLINE_BYTES, Array, Keep, Value, Whole, capturing, shape_of

call_stack.add_recorder(__file__)

Listener = Callable[[Event], None]

FIRST_CALLS = 3
"""The number of calls of each custom Function whose values are kept whole, so that its backward rule can be checked."""

_LARGEST_WHOLE, _ALL_WHOLE = 1 << 20, 1 << 24
"""The size limit in bytes of one such value, and of all of them in a recording."""


_LONG, _KEPT_OF_LONG = 400, 15
"""The length from which a call stack is long (two numbers per frame), and how many numbers of it form its key."""


class Channel:
    """One recording: its listener, how much of a value is kept, and the numbers handed out so far.

    Whole values are kept up to `limit` bytes (None: `INLINE_BYTES`), unless `keep` reduces it. Up to `handed_over`
    bytes a value is passed whole to the listener, which may keep less. A listener that `awaits` values also accepts
    those that a device has not computed yet. `read_source` returns a file's text, or None. `listen_to_several` takes
    events that happen at once, in order.
    """

    def __init__(
        self,
        listener: Listener,
        *,
        limit: int | None = None,
        keep: Keep = "whole",
        handed_over: int = 0,
        awaits: bool = False,
        read_source: Callable[[str], str | None] | None = None,
        listen_to_several: Callable[[Sequence[Event]], None] | None = None,
    ) -> None:
        self._listener = listener
        self._listen_to_several = listen_to_several or self._one_by_one
        self.keep = keep
        self.limit = limit_of(keep, limit)
        self.awaits = awaits
        self.handed_over = max(self.limit, handed_over)
        self.value: Callable[[Array | np.generic], Value] = shape_of if keep == "none" else capturing(self.limit)
        """Captures an array or NumPy scalar under this recording's limit."""
        self._calls: dict[object, int] = {}
        self._room = _ALL_WHOLE if keep == "whole" and limit is None else 0
        self._read_source = read_source or (lambda path: None)
        self._freed: deque[_End] = deque()
        self._ends: dict[int, _End] = {}
        self._queue_free = self._freed.append
        self._stacks: defaultdict[int, dict[call_stack.StackKey, int]] = defaultdict(lambda: {(): 0})
        """By thread: a line that several threads run has one stack for each."""
        self._trails: defaultdict[int, dict[call_stack.StackKey, int]] = defaultdict(dict)
        """The stack numbers by trail, also by thread."""
        self._callers: dict[tuple[int, int, int], tuple[int, int]] = {}
        """The tree of all frames of recorded stacks.

        It maps the caller's number (0: none), the code and the offset to the number of the frame and a stack that has
        it."""
        self._caller_numbers = count(1).__next__
        self._innermost: dict[int, int] = {}
        """The number of a stack's innermost frame."""
        self._ops: dict[object, int] = {}
        self.known_op: Callable[[object], int | None] = self._ops.get
        """Returns the number of an op that was emitted."""
        self._sources: set[str] = set()
        self.earlier_options = Earlier()
        self._stack_numbers = count(1).__next__
        self._op_numbers = count(1).__next__
        self.next_node = count(1).__next__
        self.next_storage = count(1).__next__
        self.next_pass = count(1).__next__
        self.next_scope = count(1).__next__
        self.next_iteration = count(1).__next__
        """Numbers the calls of functions that are iterations."""
        self.last_words: Callable[[], None] | None = None
        """Emits the last events when the recording ends, while it still listens."""
        self.before_failure: Callable[[BaseException], None] | None = None
        """Called with the error that ends the program, before it is recorded: a recording that pauses continues."""

    def is_first(self, function: object) -> bool:
        """Count a call of a custom function. Return whether it is one of the first."""
        if not self._room:
            return False
        calls = self._calls[function] = self._calls.get(function, 0) + 1
        return calls <= FIRST_CALLS

    def has_room(self, nbytes: int) -> bool:
        """Return whether a large value of one of the first calls is to be kept whole; if so, it counts towards the
        limit.
        """
        if not self.limit < nbytes <= min(_LARGEST_WHOLE, self._room):
            return False
        self._room -= nbytes
        return True

    def whole(self, array: Array | np.generic) -> Value | None:
        """Return the value with all elements, if it would otherwise have none; None if it has them, or if it is too
        large.
        """
        if not self.has_room(array.nbytes):
            return None
        return Whole(array.dtype.name, array.shape, array.tobytes())

    def emit(self, event: Event) -> None:
        """Pass an event to the listener, after the frees since the last event."""
        if self._freed:
            self._emit_freed()
        self._listener(event)

    def emit_several(self, events: Sequence[Event]) -> None:
        """Pass events that happen at once to the listener, as `emit` does."""
        if self._freed:
            self._emit_freed()
        self._listen_to_several(events)

    def _emit_freed(self) -> None:
        nodes: list[int] = []
        while self._freed:
            try:
                nodes.append(self._freed.popleft().node)
            except IndexError:  # another thread has emitted it meanwhile
                break
        for node in nodes:
            del self._ends[node]
        self._listen_to_several([NodeFreed(node) for node in nodes])

    def _one_by_one(self, events: Sequence[Event]) -> None:
        for event in events:
            self._listener(event)

    def stack(self, start: FrameType | None = None) -> int:
        """Return the number of the user's current call stack. It is found faster from a frame that is known to be in
        it.
        """
        trail = call_stack.trail(start)
        if len(trail) > _LONG:
            trail = _short(trail)
        trails = self._trails[get_ident()]
        number = trails.get(trail)
        if number is None:
            number = trails[trail] = self.stack_number(call_stack.stack(start))
        return number

    def stack_number(self, key: call_stack.StackKey) -> int:
        """Return the number of a stack captured elsewhere, such as that of an exception."""
        known = self._stacks[get_ident()]
        short = key if len(key) <= _LONG else _short(key)
        number = known.get(short)
        if number is None:
            number = known[short] = self._see_stack(key[: 2 * call_stack.DEEPEST])
        return number

    def frames(self, stack: int) -> tuple[call_stack.Frame, ...]:
        """Return the frames of a recorded stack, innermost first; empty for an unknown number."""
        keys = {number: key for key, (number, _) in tuple(self._callers.items())}
        frame, places = self._innermost.get(stack, 0), []
        while frame:
            frame, *place = keys[frame]
            places += place
        return call_stack.frames(tuple(places))

    def op(self, key: object, describe: Callable[[int], OpSeen]) -> int:
        """Return the number of an op; `describe` makes its `OpSeen` when `key` is new."""
        number = self._ops.get(key)
        if number is None:
            number = self._op_numbers()
            self.emit(describe(number))
            self._ops[key] = number
        return number

    def _see_stack(self, key: call_stack.StackKey) -> int:
        """Emit a new stack. Its base is the known stack that shares the most outermost frames with it."""
        caller, base, own = 0, 0, len(key)
        while own:
            known = self._callers.get((caller, key[own - 2], key[own - 1]))
            if known is None:
                break
            (caller, base), own = known, own - 2
        frames = call_stack.frames(key[:own])
        for frame in frames:
            if frame.path not in self._sources:
                self._sources.add(frame.path)
                self.emit(SourceSeen(frame.path, self._read_source(frame.path)))
        number = self._stack_numbers()
        self.emit(StackSeen(number, frames, base, (len(key) - own) // 2))
        for at in range(own - 2, -2, -2):  # after the event: another thread may refer to it at once
            new = self._caller_numbers(), number
            caller, _ = self._callers.setdefault((caller, key[at], key[at + 1]), new)
        self._innermost[number] = caller
        return number


def _short(key: call_stack.StackKey) -> call_stack.StackKey:
    """Return a short key for a long stack. With whole stacks as keys, a deep recursion takes hundreds of megabytes.

    Its length is odd, which no whole stack's is.
    """
    return hash(key), len(key), *key[:_KEPT_OF_LONG]


def limit_of(keep: Keep, limit: int | None) -> int:
    """Return the size in bytes up to which whole values are kept."""
    if keep != "whole":
        return FEW_BYTES
    return INLINE_BYTES if limit is None else limit


class Seen(msgspec.Struct, weakref=True, eq=False):
    """The announcement of a node on a channel. The channel emits `NodeFreed` when this object is freed with the node.

    It takes effect only after `confirm`, because an exception may occur between any two lines before that.
    """

    node: int
    channel: Channel | None = None

    def confirm(self, channel: Channel) -> None:
        """Note that the node was emitted on the channel, so that its end will be too."""
        end = _End(self, channel._queue_free)
        end.node = node = self.node
        channel._ends[node] = end
        self.channel = channel


class _End(weakref.ref[Seen]):
    """Queues itself, without Python code, when a `Seen` is freed; the channel keeps it until then."""

    __slots__ = ("node",)
    node: int


before_marks: list[Callable[[str], None]] = []
"""Called with each mark of the program before it is recorded: a recording that pauses may continue there."""

run_iteration: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] | None = None
"""Calls a function that is one iteration, with these arguments: a recording within a budget may call it again."""

channel: Channel | None = None
"""The recording in progress, or None. Read it once per event; never store it.

While any thread is on a detour (see `detour`), this name is removed from the module and `__getattr__` answers for each
thread. Reading it is slower during that time only.
"""

_detours: dict[int, Channel | None] = {}
"""The channels of threads on a detour, by thread id."""
_everybody: Channel | None = None
"""The recording in progress for all other threads while there are detours."""
_changing = RLock()


if not TYPE_CHECKING:  # a type checker should report any other name

    def __getattr__(name):
        if name != "channel":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _detours.get(get_ident(), _everybody)


def _in_progress() -> Channel | None:
    with _changing:
        return _everybody if _detours else channel


def refuse_second() -> None:
    """Raise GvizError if a recording is in progress."""
    if _in_progress() is not None or _detours.get(get_ident()) is not None:
        raise GvizError("this program is already being recorded", hint="end the first recording before the next")


@contextmanager
def listening(to: Channel) -> Iterator[Channel]:
    """Make `to` the recording in progress within the block. Raises GvizError if there is one already."""
    refuse_second()
    attach(to)
    try:
        yield to
    finally:
        if _in_progress() is to:
            detach()


@contextmanager
def detour(to: Channel | None) -> Iterator[None]:
    """Make this thread emit to `to` within the block; other threads are not affected."""
    global channel, _everybody
    thread = get_ident()
    with _changing:
        if not _detours:
            _everybody = globals().pop("channel")
        before = [_detours[thread]] if thread in _detours else []
        _detours[thread] = to
    try:
        yield
    finally:
        with _changing:
            _detours.pop(thread, None)
            if before:
                _detours[thread] = before[0]
            elif not _detours:
                channel = _everybody


def silence() -> AbstractContextManager[None]:
    """Emit nothing from this thread within the block."""
    return detour(None)


def attach(to: Channel | None) -> None:
    """Make `to` the recording in progress for all threads."""
    global channel, _everybody
    with _changing:
        if _detours:
            _everybody = to
        else:
            channel = to


def detach() -> None:
    """End the recording in progress, if there is one. The program continues."""
    attach(None)


def _alone() -> None:
    """Reset the state in a forked child: one process writes one trace, and the child has no other threads."""
    global channel, _everybody, _changing, run_iteration
    _changing = RLock()
    _detours.clear()
    channel = _everybody = run_iteration = None


os.register_at_fork(after_in_child=_alone)
