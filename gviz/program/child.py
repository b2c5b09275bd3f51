"""The recording process: records one program from its first line to the end of the interpreter.

It is a process of its own, so that the program finds an ordinary environment, and the debugger survives whatever the
program does. The standard streams are the terminal's, inherited.
"""

from __future__ import annotations

import atexit
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

from gviz import frameworks, notice
from gviz.errors import GvizError
from gviz.program import order, own_frames, parent, pytorch_only, runner, sudden_end, torch_name
from gviz.trace.recording.kept import Kept
from gviz.trace.recording.record import (  # now, while the program's own folder is not on the path yet
    Recording,
    recording_to,
)
from gviz.trace.recording.window import Window

if TYPE_CHECKING:
    from gviz.live.debuggee import Debuggee


def main() -> None:
    """Carry out the order in ``sys.argv[1]`` on the program named by the arguments behind it."""
    what = order.parse(sys.argv[1])
    debuggee = _under_control(what.live) if what.live else None
    if debuggee is None:
        parent.end_with(what.parent)
    try:
        if what.engine == "builtin":
            torch_name.install()
        target = runner.find(sys.argv[2:], as_module=what.as_module)
        _refuse_without_pytorch(what, target)
        recording = recording_to(Path(what.trace), _kept(what), force=what.replace)
        recording.begin_program(debuggee.held_by(recording) if debuggee is not None else None)
    except GvizError as error:
        notice.say(*error.lines())
        sys.exit(error.exit_code)
    except BaseException as error:
        own_frames.show_error(error)
        raise
    atexit.register(_close, recording)
    sudden_end.close_before_exit(recording)
    _run(what, target, recording)


def _refuse_without_pytorch(what: order.Order, target: runner.Target) -> None:
    """Refuse a program that is to use PyTorch where there is none, before anything is written."""
    if what.engine != "torch" or torch_name.is_installed():
        return
    with suppress(SyntaxError, OSError, GvizError):  # its own run says so
        code = runner.compiled(target)
        if torch_name.is_imported_by(code):
            missing = frameworks.TORCH.missing()
            notice.say(*missing.lines())
            sys.exit(missing.exit_code)


def _kept(what: order.Order) -> Kept:
    kept = what.keeping
    window, last, size = Window(kept.first, kept.last), kept.newest or None, kept.max_size or None
    return Kept(kept.limit, kept.keep, what.keep_source, window, last, size, kept.until)


def _under_control(address: str) -> Debuggee:
    from gviz.live.debuggee import Debuggee

    return Debuggee(address)


def _run(what: order.Order, target: runner.Target, recording: Recording) -> None:
    try:
        code = runner.load(target)
        _choose_engine(what, code, recording)
        own_frames.show_stacks()
        with _noting_graph_breaks() if what.graph_breaks else nullcontext():
            runner.execute(code)
    except SystemExit:
        raise
    except BaseException as error:
        own_frames.show_error(error)
        atexit.unregister(_close)
        recording.__exit__(type(error), error, error.__traceback__)
        raise
    finally:
        _say_what_had_no_effect(pytorch_only.limits(what))


def _noting_graph_breaks() -> AbstractContextManager[None]:
    from gviz.engine import watching
    from gviz.graphify.watch import Watch

    return watching.recording_every_thread(Watch())


def _close(recording: Recording) -> None:
    """End the recording after everything the program left for the end: it was registered first, so it runs last."""
    recording.__exit__(None, None, None)


def _choose_engine(what: order.Order, code: CodeType, recording: Recording) -> None:
    if what.engine == "builtin":
        return
    if torch_name.is_imported_by(code) and not torch_name.is_installed():
        torch_name.install()
        notice.say("gviz: PyTorch is not installed, so `import torch` means gviz's own engine in this run")
        return
    kept = what.keeping
    frameworks.follow(recording, phase=kept.phase, module=kept.module, compiled=kept.compiled)


def _say_what_had_no_effect(limits: str) -> None:
    if limits and not frameworks.TORCH.imported:
        why = "the program did not use PyTorch, and gviz's own engine is recorded whole"
        notice.say(f"gviz: {limits} had no effect: {why}")
