"""Ranks: processes that a program starts, recorded as soon as they join a process group.

Before that, there is only an entry in ``sys.meta_path``, because a worker that only loads data, or computes by
itself, never joins a group. A process that joins is a rank of a training run, and is recorded from there to its end.
The recording modules are imported inside functions, when a process has joined.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from functools import partial, wraps
from itertools import count
from typing import TYPE_CHECKING, Any

from gviz.system.import_hook import when_imported

if TYPE_CHECKING:
    from pathlib import Path

    from gviz.trace.recording.record import Recording

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_GROUPS = "torch.distributed.distributed_c10d"
_JOINED = "_update_default_pg"
"""The PyTorch function that is called with the group this process has joined, or None when it has left it."""

_STARTED = "from multiprocessing.spawn ", "from multiprocessing.forkserver "
"""How the command of a Python begins that was started as a process, or to fork processes."""

_RUNS_A_PROCESS = ("multiprocessing/process.py", "torch/multiprocessing/spawn.py")
"""The files that call a process's function, and show the error that ends it."""

_waiting = ExitStack()
"""Never closed: a process waits as long as it runs."""


def expect_ranks(request: dict[str, Any]) -> None:
    """Record processes that `multiprocessing` starts, by fork or spawn, when they join a group.

    `request` is an `Order` in serialized form. This process already has a recording.
    """
    _waiting.enter_context(when_imported(_GROUPS, partial(_listen, request, os.getpid())))
    _waiting.enter_context(when_imported("multiprocessing.util", partial(_prepare_spawned, request)))


def expect_group(request: str) -> None:
    """Wait for the group, in a process that was spawned."""
    _waiting.enter_context(when_imported(_GROUPS, partial(_listen, json.loads(request), 0)))


def _listen(request: dict[str, Any], recorded: int) -> None:
    """Watch for the joined group, in every process except the one that is `recorded` already."""
    groups = sys.modules[_GROUPS]
    join = getattr(groups, _JOINED, None)
    if join is None:
        return

    @wraps(join)
    def joined(group: Any) -> None:
        join(group)
        if os.getpid() != recorded and hasattr(group, "rank"):
            _record(request, group.rank())

    setattr(groups, _JOINED, joined)


def _prepare_spawned(request: dict[str, Any]) -> None:
    """Make spawned Pythons wait for their group before they do what they were started for."""
    util = sys.modules["multiprocessing.util"]
    start = util.spawnv_passfds
    begin = f"import sys; sys.path.insert(0, {_ROOT!r})\n" \
            "from gviz.system.processes import keep_to_this; keep_to_this()\n" \
            f"from gviz.program.rank_recording import expect_group; expect_group({json.dumps(request)!r})"  # fmt: skip

    @wraps(start)
    def started(path: Any, words: list[Any], files: Any) -> int:
        words = [f"exec({begin!r}, {{}}); {word}" if str(word).startswith(_STARTED) else word for word in words]
        process: int = start(path, words, files)
        return process

    util.spawnv_passfds = started  # type: ignore[attr-defined]


def _record(request: dict[str, Any], rank: int) -> None:
    """Record this process according to an order; if that fails, it continues unrecorded."""
    from pathlib import Path

    from gviz import frameworks
    from gviz.errors import GvizError
    from gviz.program import interpreter_exit, traceback_without_gviz
    from gviz.program import recording_request as order
    from gviz.system import notice
    from gviz.trace.recording import record

    if record.latest is not None and record.latest.active:
        return  # it records itself
    what = order.read(request)
    try:
        recording = record.recording_to(_new_trace(Path(what.trace).parent, rank), what.kept, force=False)
        recording.begin_program()
    except GvizError as trouble:
        notice.show(f"gviz: warning: rank {rank} is not recorded: {trouble}")
        return
    interpreter_exit.keep_the_last(recording)
    keeping = what.keeping
    frameworks.follow(recording, **keeping.of_pytorch)
    traceback_without_gviz.show_stacks()
    _record_errors(recording)


def _new_trace(folder: Path, rank: int) -> Path:
    """Return an unused trace path for a rank: a program may restart its ranks."""
    from gviz.program.rank_trace_files import trace_of

    paths = (folder / trace_of(rank, again) for again in count())
    return next(path for path in paths if not path.exists())


def _record_errors(recording: Recording) -> None:
    """Record an error that ends this process: `multiprocessing` catches and shows it, so it never leaves Python."""
    import traceback

    for name in ("print_exc", "format_exc"):
        setattr(traceback, name, _recording_errors(getattr(traceback, name), recording))


def _recording_errors(show: Any, recording: Recording) -> Any:
    from gviz.program.traceback_without_gviz import leave_out_listening

    @wraps(show)
    def shown(*arguments: Any, **options: Any) -> Any:
        error = sys.exc_info()[1]
        if error is not None and sys._getframe(1).f_code.co_filename.replace("\\", "/").endswith(_RUNS_A_PROCESS):
            leave_out_listening(error.__traceback__)
            recording.fail(error)
        return show(*arguments, **options)

    return shown
