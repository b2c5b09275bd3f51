"""What a program is shown of its frames: those that it would have under ``python``, where none is around them.

Python itself keeps the frames of whoever runs a program. Where tracebacks and stacks are made of them, gviz's are left
out: those that started the program, and those by which a recording listens.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import FrameType, TracebackType

from gviz.site import is_hidden, of_listening

_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]

_HERE = str(Path(__file__).parent)  # where programs are run: whoever they call, they call none of it
_shown_by_python = sys.__excepthook__


def show_error(error: BaseException) -> None:
    """Trim the error's traceback to the program's frames, now and when the interpreter prints it."""
    own = _own(error.__traceback__)
    BaseException.with_traceback(error, own)  # that of a frozen dataclass refuses an assignment
    sys.excepthook = _trimming(getattr(sys, "excepthook", _missing), error, own)


def show_stacks() -> None:
    """From now on `traceback` and `inspect` see stacks that begin with the program."""
    walk, outer = traceback.walk_stack, inspect.getouterframes

    @wraps(walk)
    def walk_stack(f: FrameType | None) -> Iterator[tuple[FrameType, int]]:
        # Without a frame it finds its caller by counting frames, and one more would be between them.
        return walk(f) if f is None else iter([(frame, frame.f_lineno) for frame in _of_the_program(f)])

    @wraps(outer)
    def getouterframes(frame: FrameType, context: int = 1) -> list[inspect.FrameInfo]:
        own = set(map(id, _of_the_program(frame)))
        return [info for info in outer(frame, context) if id(info.frame) in own]

    traceback.walk_stack, inspect.getouterframes = walk_stack, getouterframes


def _of_the_program(frame: FrameType | None) -> list[FrameType]:
    """The frames from here outwards that are the program's own, or of what it uses, innermost first."""
    frames: list[FrameType] = []
    while frame is not None and not frame.f_code.co_filename.startswith(_HERE):
        frames.append(frame)
        frame = frame.f_back
    ours = of_listening([frame.f_code for frame in reversed(frames)])
    return [frame for up, frame in enumerate(frames, 1) if len(frames) - up not in ours]


def _own(entry: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins with the program's own first frame."""
    while entry is not None and is_hidden(entry.tb_frame.f_code.co_filename):
        entry = entry.tb_next
    return _leave_out_listening(entry)


def _leave_out_listening(entry: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames by which gviz listens to a framework in the middle of its work."""
    entries = []
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    ours = of_listening([entry.tb_frame.f_code for entry in entries])
    left = None
    for place, entry in reversed([*enumerate(entries)]):
        if place not in ours:
            entry.tb_next = left
            left = entry
    return left


def _trimming(hook: _Hook, error: BaseException, own: TracebackType | None) -> _Hook:
    """What calls the program's own `hook` as the interpreter does."""

    def excepthook(kind: type[BaseException], value: BaseException, entry: TracebackType | None) -> None:
        if value is error:
            BaseException.with_traceback(error, own)
            sys.last_traceback = entry = own
        try:
            hook(kind, value, entry)
        except SystemExit:
            raise  # it ends the program with this exit code
        except BaseException as trouble:
            _show_both(trouble, value, entry)

    return excepthook


def _missing(kind: type[BaseException], value: BaseException, entry: TracebackType | None) -> None:
    """What the interpreter does for a program that has removed the hook."""
    _say("sys.excepthook is missing\n")
    _shown_by_python(kind, value, entry)


def _show_both(trouble: BaseException, value: BaseException, entry: TracebackType | None) -> None:
    """What the interpreter shows of a hook that failed itself, which nobody has called but Python."""
    raised = trouble.__traceback__
    within = raised.tb_next if raised is not None else None
    BaseException.with_traceback(trouble, within)
    _say("Error in sys.excepthook:\n")
    _shown_by_python(type(trouble), trouble, within)
    _say("\nOriginal exception was:\n")
    _shown_by_python(type(value), value, entry)


def _say(text: str) -> None:
    if getattr(sys, "stderr", None) is not None:
        sys.stderr.write(text)
