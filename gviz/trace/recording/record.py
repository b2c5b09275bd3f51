"""Recordings: the `with` block, its options (`Kept`), and the part of the program that it covers (`Window`).

A recording inside the recording of a whole program (`NestedRecording`) creates no file of its own. The error that ends
a block is read without calls of methods that its class may override.
"""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from itertools import count
from pathlib import Path
from threading import get_ident
from types import CodeType, TracebackType
from typing import Any, ParamSpec, TypeVar, cast, get_args

from gviz import argument_checks, emit
from gviz.emit import Channel, Listener
from gviz.errors import GvizError, SystemRefusal, refuse_unknown
from gviz.events import Failed, Marked
from gviz.rich_representation import Displayed
from gviz.source import call_stack
from gviz.system import notice
from gviz.system.gc_pause import seldom_in_full
from gviz.trace.file import bulk_statistics
from gviz.trace.file import format as file_format
from gviz.trace.file.paths import new_trace, refuse_other_file, remove_for_new, traces
from gviz.trace.file.retention_policy import Bounds, Until, bounds
from gviz.trace.file.writer import EndCondition, TraceWriter, about
from gviz.trace.recording.output_capture import overhearing, overhearing_warnings
from gviz.trace.recording.source_text import read_source
from gviz.values.value import Keep

call_stack.add_recorder(str(Path(__file__).parents[1]) + os.sep)


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Window:
    """Every stretch from a mark named `first` to the next one named `last`, as often as the program reaches them.

    Empty names are the beginning and the end of the recording.
    """

    first: str = ""
    last: str = ""

    @contextmanager
    def watched(self, channel: Channel) -> Iterator[None]:
        """Let the program's marks start and stop what `channel` records, within the context."""
        global _watched
        if self == ALL:
            yield
            return
        before, _watched = _watched, (self, channel)
        if self.first:
            emit.detach()
        try:
            yield
        finally:
            _watched = before


ALL = Window()
_watched: tuple[Window, Channel] | None = None


def begin_at(mark: str) -> None:
    """Start recording if a stretch begins at this mark."""
    if _watched is not None and _watched[0].first == mark and emit.channel is None:
        emit.attach(_watched[1])


def end_at(mark: str) -> None:
    """Stop recording if a stretch ends at this mark."""
    if _watched is not None and _watched[0].last == mark and emit.channel is _watched[1]:
        emit.detach()


@dataclass(frozen=True, slots=True)
class Kept:
    """The recording options that are the same for all frameworks. Raises GvizError for unknown values.

    `limit`: arrays up to this many bytes are kept whole (None: 1024), larger ones as statistics. `keep` can reduce that
    further. `source` keeps the text of the program's files. Nothing is recorded outside of `window`. `last` keeps only
    the last iterations (``3``) or marks (``"3 marks"``) of a long run, and `max_size` limits the newest part to a
    number of bytes (``"500M"``). `older` selects iterations before the last ones that are kept, too (``"first,
    findings, every 100, thinned"``, see `gviz.trace.file.retention_policy`). `until` (``"nan"``, ``"inf"``) ends the
    recording at the first event that holds one. Only the owner may read the trace unless `share` is set; then the umask
    decides, as for other files.
    """

    limit: int | None = None
    keep: Keep = "whole"
    source: bool = True
    window: Window = ALL
    last: int | str | None = None
    max_size: int | str | None = None
    until: Until = ""
    share: bool = False
    older: str | None = None

    def __post_init__(self) -> None:
        bounds(self.last, self.max_size, self.older)
        refuse_unknown("keep", self.keep, get_args(Keep))
        refuse_unknown("until", self.until, get_args(Until))
        if self.limit is not None:
            argument_checks.whole("limit", self.limit)
        argument_checks.flag("share", self.share)
        if not isinstance(self.window, Window):
            raise argument_checks.refused("window", self.window, "a gviz.trace.recording.record.Window")

    @property
    def bounds(self) -> Bounds:
        """How much of a long run is kept."""
        return bounds(self.last, self.max_size, self.older)


EVERYTHING = Kept()


OWN = "gviz.engine"
"""The default framework name in a trace."""

_RECORDED_BY = "__gviz_told__"
"""The attribute of an error that stores which recording has recorded it."""

_numbers = count(1)

latest: Recording | None = None
"""The recording that this process started last; it may have ended."""

_program: Recording | None = None
"""The recording of the whole program, if gviz's own runner started one."""


class Recording(Displayed):
    """A context manager that records its block to the trace at `path`.

    An exception that leaves the block is recorded as `Failed` and propagates. After a fork, only the parent records. If
    recording fails (disk full, or a bug in gviz), one warning is shown and the block continues unrecorded. An error is
    raised only for what the program can fix itself: a second recording, or an impossible file name.
    """

    def __init__(
        self, path: Path, kept: Kept = EVERYTHING, framework: str = OWN, *,
        replaces: bool = False, refused: Exception | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self._refused = refused  # why no trace can be written, if that is known beforehand
        self._replaces = replaces
        self.framework = framework
        self._kept = kept
        self._contexts: list[Callable[[Recording], AbstractContextManager[object]]] = []
        self._lookups: list[Callable[[object], int]] = []
        self._announcers: list[Callable[[object], None]] = []
        self._through: Callable[[TraceWriter], Listener] = _straight
        self._writer: TraceWriter | None = None
        self._number = next(_numbers)
        self._open = ExitStack()
        self._joined = ExitStack()  # exited by the closing thread: a framework may keep data per thread

    def __enter__(self) -> Recording:
        if self.active:  # `attach` has entered it already
            return self
        emit.refuse_second()  # before a file is created or removed
        try:
            self._begin()
        except Exception as error:  # the program continues after any error
            if isinstance(error, GvizError) and not isinstance(error, SystemRefusal):
                raise
            why = f": {error.why}" if isinstance(error, GvizError) and error.why else ""
            notice.show(f"gviz: warning: nothing is recorded: {file_format.in_words(error)}{why}")
        return self

    def _begin(self) -> None:
        global latest
        if self._refused is not None:
            raise self._refused
        if self._replaces:
            remove_for_new(self.path)
        kept, limit = self._kept, emit.limit_of(self._kept.keep, self._kept.limit)
        writer = self._writer = TraceWriter(
            self.path, about=about(self.framework), on_error=self._detached, bounds=kept.bounds, limit=limit,
            ending=EndCondition(kept.until, self._ended) if kept.until else None, share=kept.share,
        )  # fmt: skip
        self.channel = Channel(
            self._through(writer), limit=kept.limit, keep=kept.keep, handed_over=bulk_statistics.LARGEST,
            awaits=self._through is _straight, read_source=read_source if kept.source else None,
            listen_to_several=writer.record_several if self._through is _straight else None,
        )  # fmt: skip
        atexit.register(self._close)  # in case a signal handler raises an exception before the end of `__exit__`
        with ExitStack() as begun:
            begun.callback(self._close)  # whatever fails below, nothing is left behind
            self._listen()
            begun.pop_all()
        latest = self

    def _listen(self) -> None:
        if self.framework == OWN:  # another framework is attached by itself
            self._open.enter_context(seldom_in_full())
        self._open.enter_context(emit.listening(self.channel))
        self._open.enter_context(overhearing_warnings(self.channel))
        self._open.enter_context(overhearing(self.channel))
        for listen in self._contexts:
            self._joined.enter_context(listen(self))
        self._open.enter_context(self._kept.window.watched(self.channel))

    def with_context(self, listen: Callable[[Recording], AbstractContextManager[object]]) -> Recording:
        """Enter a context when the recording starts, until it ends; used to record another framework."""
        self._contexts.append(listen)
        return self

    def join(self, context: AbstractContextManager[object]) -> None:
        """Enter a context now and exit it when the recording ends."""
        self._joined.enter_context(context)

    def add_lookup(self, node_of: Callable[[object], int]) -> None:
        """Register a function that returns the node of another framework's tensor, 0 if it has none."""
        self._lookups.append(node_of)

    def add_announcer(self, announce: Callable[[object], None]) -> None:
        """Register a function that announces another framework's tensor."""
        self._announcers.append(announce)

    def announce(self, tensor: object) -> None:
        """Announce a tensor of another framework here, before its first use, if it is new."""
        for announce in self._announcers:
            announce(tensor)

    def node_of(self, tensor: object) -> int:
        """Return the node of a tensor in this recording, 0 if it has none."""
        if self._writer is None:
            return 0
        seen = getattr(tensor, "_seen", None)  # set by the engine on recorded tensors
        if seen is not None:
            return int(seen.node) if seen.channel is self.channel else 0
        return next((node for node_of in self._lookups if (node := node_of(tensor))), 0)

    @property
    def is_open(self) -> bool:
        """Whether the recording has started and its file still accepts events."""
        return self._writer is not None and not self._writer.dead

    def set_fact(self, name: str, text: str) -> None:
        """Set a fact about the whole trace, such as its framework."""
        if self._writer is not None:
            self._writer.set_fact(name, text)

    def close(self) -> None:
        """End the recording. Can be called twice."""
        self._close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(None if issubclass(type(error), SystemExit | GeneratorExit) else error)

    def begin_program(self, through: Callable[[TraceWriter], Listener] | None = None) -> None:
        """Start the recording of a whole program; `through` wraps the writer in another listener, if given.

        Recordings that the program itself starts are then skipped, and a full disk does not stop the program.
        """
        global _program
        self._through = through or _straight
        try:
            emit.refuse_second()
            self._begin()
            _program = self
        except file_format.NoRoom as error:
            self._warn(str(error))

    def __len__(self) -> int:
        """Return the number of events written to the file."""
        return 0 if self._writer is None else len(self._writer)

    @property
    def active(self) -> bool:
        """Whether this is the current recording."""
        return self._writer is not None and emit.channel is self.channel

    def fail(self, error: BaseException) -> None:
        """Record that the program failed with an error. Records each error once, since it may be raised again."""
        if self.active and not self.knows(error):
            # keeping the error itself would keep all objects in its frames alive
            _attributes(error)[_RECORDED_BY] = self._number
            stack = self.channel.stack_number(_raised_at(_traceback_of(error)))
            text = _message(error)
            node = self._writer.failing_node(text) if self._writer is not None else 0
            self.channel.emit(Failed(type(error).__name__, text, node, stack, _printed(error)))

    def knows(self, error: BaseException) -> bool:
        """Return whether this recording already has a failure with this error."""
        return _attributes(error).get(_RECORDED_BY) == self._number

    def flush(self) -> None:
        """Write all events so far to the file."""
        if self._writer is not None:
            self._writer.flush()

    def __fspath__(self) -> str:
        """Return the path of the trace, with all events so far written: a recording can be used like its file."""
        self.flush()
        return os.fspath(self.path)

    def _close(self, error: BaseException | None = None) -> None:
        try:
            if error is not None and self._writer is not None and self.channel.before_failure is not None:
                self.channel.before_failure(error)
            if self.active and (last_words := self.channel.last_words) is not None:
                last_words()
            self._joined.close()
        except Exception as failure:  # a framework's listener could not be removed
            self._warn(file_format.in_words(failure))
        if self._writer is not None:
            self._writer.close(partial(self._end, error))
        self._open.close()  # needed in a forked child, whose writer does nothing
        atexit.unregister(self._close)

    def _end(self, error: BaseException | None) -> None:
        try:
            if error is not None:
                self.fail(error)
        finally:
            self._open.close()

    def _detached(self, error: str) -> None:
        self._ended()
        self._warn(error)

    def _ended(self) -> None:
        """Stop recording; the program continues."""
        if emit.channel is self.channel:
            emit.detach()

    def _warn(self, error: str) -> None:
        notice.show(f"gviz: warning: recording of {self.path} has ended: {error}")


def _straight(writer: TraceWriter) -> Listener:
    return writer.record


def record(
    path: str | os.PathLike[str] | None = None, kept: Kept = EVERYTHING, *, force: bool = False, framework: str = OWN
) -> Recording | NestedRecording:
    """Record a ``with`` block to a trace at `path`; without a path, to one in the user's cache folder.

    Raises GvizError if the file exists, unless `force` is set. Records only the built-in engine; users call
    `gviz.record`.
    """
    if _program is not None and emit.channel is _program.channel:
        return NestedRecording(_program)
    force, framework = argument_checks.flag("force", force), argument_checks.text("framework", framework)
    if path is not None:
        return recording_to(Path(argument_checks.new_path("path", path)), kept, force=force, framework=framework)
    try:
        trace_path = new_trace(sys.argv[0])
    except (SystemRefusal, OSError) as error:  # there is no cache, for example because the home folder is read-only
        return Recording(traces() / "unwritten.gviz", kept, framework, refused=error)
    return recording_to(trace_path, kept, force=force, framework=framework)


def recording_to(
    path: Path, kept: Kept, *, force: bool, framework: str = OWN, hint: str = "choose another name, or pass force=True"
) -> Recording:
    """Return a recording that has not started. Raises GvizError if the file exists, unless `force` replaces it.

    `hint` is the advice in that error. The path is made absolute, so that it survives a change of directory.
    """
    try:
        path = path.absolute()
    except FileNotFoundError:
        raise GvizError(f"{path} cannot be written", why="the current folder has been deleted") from None
    if force:
        refuse_other_file(path)
    elif path.exists():
        raise GvizError(f"{path} already exists", hint=hint)
    return Recording(path, kept, framework, replaces=force)


def mark(name: str) -> None:
    """Name the current moment of the recording; does nothing without one. Raises GvizError if `name` is not a
    string.
    """
    argument_checks.text("name", name)
    begin_at(name)
    for each in tuple(emit.before_marks):
        each(name)
    channel = emit.channel
    if channel is not None:
        channel.emit(Marked(name))
    end_at(name)


_in_iteration: set[int] = set()
"""The threads that run an iteration which is a function call."""


def iteration(fn: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return a function whose calls are the iterations of the program, for use as a decorator.

    A mark ``iteration N`` begins each call in a recording. Without a recording nothing changes. Under `gviz monitor`,
    or with a budget, each call is one iteration. If an alarm is raised in a call and a snapshot of its state fits into
    the budget, the state is restored, and the function is called again with the same arguments and recorded whole. The
    caller gets that result. A call inside another one belongs to it. Raises GvizError unless `fn` is a function that
    has run when its call returns.
    """
    if not callable(fn):
        raise argument_checks.refused("fn", fn, "a function")
    if any(is_kind(fn) for is_kind in (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)):
        why = "its call returns before it has run"
        raise GvizError("an iteration cannot be an async function or a generator", why=why, exit_code=2)

    @wraps(fn)
    def call(*args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        thread = get_ident()
        if thread in _in_iteration:
            return fn(*args, **options)
        _in_iteration.add(thread)
        try:
            if (run := emit.run_iteration) is not None:
                return cast("_Result", run(fn, args, options))
            if (channel := emit.channel) is not None:
                mark(f"iteration {channel.next_iteration()}")
            return fn(*args, **options)
        finally:
            _in_iteration.discard(thread)

    return call


class NestedRecording(Displayed):
    """Replaces a recording inside a program that is already recorded as a whole: a part of that recording."""

    def __init__(self, outer: Recording) -> None:
        self._outer = outer
        notice.show(f"gviz: already recording to {outer.path}; this inner recording is left out")

    def __enter__(self) -> NestedRecording:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def __len__(self) -> int:
        """Return the number of events of the whole program written to the file."""
        return len(self._outer)

    @property
    def path(self) -> Path:
        """The trace of the whole program."""
        return self._outer.path

    @property
    def active(self) -> bool:
        """Whether the program is still recorded."""
        return self._outer.active

    def with_context(self, listen: Callable[[Recording], AbstractContextManager[object]]) -> NestedRecording:
        """Do nothing: the recording of the program has its own listeners."""
        return self

    def node_of(self, tensor: object) -> int:
        """Return the node of a tensor in this recording, 0 if it has none."""
        return self._outer.node_of(tensor)

    def announce(self, tensor: object) -> None:
        """Announce a tensor of another framework here, before its first use, if it is new."""
        self._outer.announce(tensor)

    @property
    def channel(self) -> Channel:
        """The channel of the outer recording."""
        return self._outer.channel

    def flush(self) -> None:
        """Write all events so far to the file."""
        self._outer.flush()

    def __fspath__(self) -> str:
        """Return the path of the program's trace, with all events so far written."""
        return os.fspath(self._outer)

    def close(self) -> None:
        """Do nothing: the recording of the program continues."""


# ----------------------------------------------------------------------------------------------------------------------
# Reads exceptions without calling methods that their classes may override.


def _attributes(error: BaseException) -> dict[str, Any]:
    """Return the attributes of an exception, which can be set, too."""
    members: dict[str, Any] = BaseException.__dict__["__dict__"].__get__(error)
    return members


def _traceback_of(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception."""
    traceback: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    return traceback


def _message(error: BaseException) -> str:
    """Return the text of an exception, or a substitute if its ``__str__`` raises."""
    try:
        return str(error)
    except Exception as error:
        return f"its text could not be made ({type(error).__name__})"


def _printed(error: BaseException) -> str:
    """Return the traceback as Python prints it, even if a ``__str__`` in it raises."""
    try:
        return "".join(traceback.format_exception(type(error), error, _traceback_of(error)))
    except Exception:  # a text in it could not be created
        return "".join([*traceback.format_tb(_traceback_of(error)), f"{type(error).__name__}: {_message(error)}\n"])


def _raised_at(trace: TracebackType | None) -> call_stack.StackKey:
    """Return the user's stack at the point where an exception was raised, innermost frame first."""
    places: list[tuple[CodeType, int]] = []
    outer = trace.tb_frame.f_back if trace is not None else None
    while trace is not None:
        places.insert(0, (trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    while outer is not None:
        places.append((outer.f_code, outer.f_lasti))
        outer = outer.f_back
    return call_stack.stack_of(places)
