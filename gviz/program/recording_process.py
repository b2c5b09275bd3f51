"""The recorded program's own process: records it from its first line to the end of the interpreter.

It is a separate process, so that the program finds an ordinary environment, and the debugger survives whatever the
program does. The standard streams are inherited from the terminal. The interpreter itself runs the program, after
`begin` has returned.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gviz import frameworks
from gviz.errors import GvizError
from gviz.program import interpreter_exit, rank_recording, rank_trace_files, target, torch_alias, traceback_without_gviz
from gviz.program import recording_request as order
from gviz.system import notice, processes
from gviz.trace.file.paths import refuse_other_file, remove_for_new
from gviz.trace.recording.record import (  # now, before the program's own folder is on the path
    recording_to,
)

if TYPE_CHECKING:
    from gviz.live.debuggee import Debuggee


def begin(request: dict[str, Any], program: str) -> None:
    """Start to record the program that is about to run, according to an order; on an error, end this process."""
    try:
        _begin(request, program)
    except GvizError as error:
        notice.show(*error.lines())
        sys.stderr.flush()
        os._exit(error.exit_code)  # a SystemExit would be a fatal error, because Python is still starting


def _begin(request: dict[str, Any], program: str) -> None:
    what = order.read(request)
    debuggee = _under_control(what.live) if what.live else None
    if debuggee is None:
        processes.end_with(what.parent)
    if debuggee is not None and not what.as_module and program == target.STANDARD_INPUT:
        why = "the debugger reads its commands from there"
        raise GvizError("no program can be read from standard input", why=why, hint="gviz record -", exit_code=2)
    script = target.find(program, as_module=what.as_module)
    means_engine = _means_engine(what, script)
    if means_engine:
        torch_alias.install()
    if what.records_ranks:
        _remove_rank_traces(Path(what.trace), force=what.replace)
    by_hand = "another gviz has just begun to write it: choose another name, or use --force to overwrite it"
    recording = recording_to(Path(what.trace), what.kept, force=what.replace, hint=by_hand)
    recording.begin_program(debuggee.paused_by(recording) if debuggee is not None else None)
    ending = ExitStack()  # registered first, and therefore run after all exit functions of the program
    atexit.register(ending.close)
    ending.push(interpreter_exit.ends_recording(recording))
    ending.callback(_warn_of_limits_without_effect, torch_alias.pytorch_options(what))
    interpreter_exit.keep_the_last(recording)
    if not means_engine:
        frameworks.follow(recording, **what.keeping.of_pytorch)
        if what.records_ranks:
            rank_recording.expect_ranks(request)
    if what.graph_breaks:
        _note_graph_breaks(ending)
    traceback_without_gviz.show_stacks()


def _remove_rank_traces(trace: Path, *, force: bool) -> None:
    """Remove the traces of ranks that another run has left. Raises GvizError unless `force` is set."""
    for rank in rank_trace_files.rank_traces(trace):
        if not force:
            hint = "choose another folder, or --force overwrites them"
            raise GvizError(f"{trace.parent} already contains traces of ranks", hint=hint)
        refuse_other_file(rank)
        remove_for_new(rank)


def _means_engine(what: order.Order, script: target.Target | None) -> bool:
    """Return whether ``import torch`` is to mean the built-in engine. Raises GvizError if PyTorch is requested but
    missing.
    """
    if what.engine == "builtin":
        return True
    if script is None or torch_alias.is_installed(script.folder) or not _imports_torch(script):
        return False
    if what.engine == "torch":
        raise frameworks.TORCH.missing()
    notice.show("gviz: PyTorch is not installed, so `import torch` means the built-in engine in this run")
    return True


def _imports_torch(script: target.Target) -> bool:
    with warnings.catch_warnings(), suppress(SyntaxError, ValueError, OSError, GvizError):
        warnings.simplefilter("ignore")  # the program's own run shows its warnings
        return torch_alias.is_imported_by(target.compiled(script))
    return False


def _under_control(address: str) -> Debuggee:
    from gviz.live.debuggee import Debuggee

    return Debuggee(address)


def _note_graph_breaks(ending: ExitStack) -> None:
    from gviz.engine import operation_watchers
    from gviz.graphify.break_recorder import BreakRecorder

    ending.enter_context(operation_watchers.recording_every_thread(BreakRecorder()))


def _warn_of_limits_without_effect(limits: str) -> None:
    if limits and not frameworks.TORCH.imported:
        why = "the program did not use PyTorch, and the built-in engine is recorded whole"
        notice.show(f"gviz: {limits} had no effect: {why}")
