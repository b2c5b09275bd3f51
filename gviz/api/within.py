"""What a program calls to be debugged from within: it stops there under ``gviz run``, else it records and shows that.

A program that runs by itself cannot be held and looked at in one process; so what is shown then is a recording: up to
the call, or of the ``with`` block.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from gviz import emit, frameworks
from gviz.api.viewing import view
from gviz.errors import GvizError
from gviz.live.protocol import Why
from gviz.representation import in_notebook, notebook_front
from gviz.source import site
from gviz.system import notice
from gviz.trace.recording import record as recording
from gviz.trace.recording.record import Recording, Within
from gviz.tui import terminal
from gviz.tui.session_options import ExitAction


def breakpoint(*_: Any, **__: Any) -> None:
    """Stop here under ``gviz run``; else begin to record, or show what was recorded up to here.

    ``PYTHONBREAKPOINT=gviz.breakpoint`` makes Python's own ``breakpoint()`` mean this. What is still unseen at the
    end of the program is shown there.
    """
    if held("breakpoint"):
        return
    with _in_turn:
        going_on = active()
        if going_on is not None:
            _show(going_on, here=True)
        elif in_notebook():
            said = "gviz: nothing is recorded here: %%gviz at the top of a cell, or with gviz.debug(): …, does that"
            notebook_front().remark(said)
        else:
            _Unseen(Path(sys.argv[0]).name).begin()


class debug:  # it is used as a function: with gviz.debug(): …
    """Stop where the block begins under ``gviz run``; else record the block, and show that at its end or failure.

    Within a recording nothing more is recorded, and that one is shown up to the end of the block.
    """

    def __enter__(self) -> None:
        self._made: Recording | Within | None = None
        self._own = False
        if not held("breakpoint"):
            self._made = active()
            self._own = self._made is None
            if self._made is None:
                if in_notebook():
                    notebook_front().hide_machinery()
                self._made = frameworks.record().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made is not None:
            if self._own:
                self._made.__exit__(kind, error, trace)
            _show(self._made)


def post_mortem() -> None:
    """Show what has happened up to the failure that is being handled, or up to now.

    Under ``gviz run`` the program stops here. Raises GvizError if nothing was recorded.
    """
    error, going_on = sys.exception(), active()
    if error is not None and going_on is not None:
        going_on.fail(error)
    if held("post-mortem"):
        return
    latest = recording.latest
    if latest is None:
        raise GvizError("nothing was recorded", hint="with gviz.debug(): … records and shows a block")
    if error is not None and not latest.knows(error):
        notice.say(f"gviz: {type(error).__name__} came when nothing was recorded; this is what was recorded last")
    _show(latest, here=error is None)


class _Unseen:
    """A recording that goes on to the end of the program, and is shown there from where it was seen last."""

    def __init__(self, program: str) -> None:
        self._made = frameworks.record()
        self._program = program

    def begin(self) -> None:
        self._made.__enter__()
        atexit.register(self._end)
        shown = f"the next breakpoint() shows it; gviz run {self._program} stops at the first, too"
        notice.say(f"gviz: recording {self._program} from here on, {shown}")

    def _end(self) -> None:
        """Without a person it is said where it lies: an interpreter that is about to end answers no more commands."""
        self._made.__exit__(None, None, None)
        seen = _seen.get(self._made.path, 0)
        with terminal.keyboard() as keyboard:
            if keyboard is not None and len(self._made) > seen and not _left_alone:
                view(self._made.path, seen or None)
            else:
                notice.say(f"gviz: recorded to {self._made.path}")


def active() -> Recording | None:
    """The recording that goes on in this process."""
    latest = recording.latest
    return latest if latest is not None and latest.active else None


def held(why: Why, node: int = 0) -> bool:
    """Whether there is nothing to show: a debugger has held this process, to look at a node, or nobody wants stops."""
    if _left_alone:
        return True
    debuggee = sys.modules.get("gviz.live.debuggee")
    current = getattr(debuggee, "current", None)
    if current is not None:
        _say_where()
    return current is not None and bool(current.stop_here(why, node))


def _say_where() -> None:
    """Let the recording have the text of the file that this is called in, where nothing was made yet."""
    if (channel := emit.channel) is not None:
        channel.stack()


_left_alone = False
"""Whether somebody has said that the program is to go on, or to end, without any stop."""

_in_turn = threading.RLock()
"""Held by the thread that shows what is recorded, or begins to record: the others wait, as there is one terminal."""

_seen: dict[Path, int] = {}
"""How many events of a recording have been shown."""


def _show(made: Recording | Within, *, here: bool = False) -> None:
    """Open the debugger on a recording as far as it is, without recording that; `here` at its end."""
    with _in_turn:
        if not _left_alone:  # as who was there before may have said
            _open(made, here=here)


def _open(made: Recording | Within, *, here: bool) -> None:
    if here:
        _say_where()
    made.flush()
    _seen[made.path] = len(made)
    with emit.silence():
        if here:
            _obey(view(made.path, len(made), waited_for=True, stack=site.user_frames()))
        else:
            _obey(view(made.path, waited_for=True))


def _obey(action: ExitAction) -> None:
    """Let the program go on as who left the debugger wants it; SystemExit where it is to end."""
    global _left_alone
    _left_alone = action != "go on"
    if action == "stop":
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()  # the end of this thread would be no end of the program
        sys.exit("gviz: the program was stopped in the debugger")


def _alone() -> None:
    """The threads that showed something, or waited for that, are not in a forked child."""
    global _in_turn
    _in_turn = threading.RLock()


os.register_at_fork(after_in_child=_alone)
