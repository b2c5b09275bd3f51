"""A process that has joined a process group is a rank of a training run: recorded from there to its end."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

from gviz import frameworks, notice
from gviz.errors import GvizError
from gviz.program import order, own_frames, sudden_end
from gviz.program.rank_names import trace_of
from gviz.trace.recording import record

_RUNS_A_PROCESS = ("multiprocessing/process.py", "torch/multiprocessing/spawn.py")
"""What calls the function of a process, and shows the error that ends it."""


def begin(told: dict[str, Any], rank: int) -> None:
    """Record this process, as an order says; where it cannot be, it goes on without."""
    if record.latest is not None and record.latest.active:
        return  # it records itself
    what = order.read(told)
    try:
        recording = record.recording_to(next(_names(Path(what.trace).parent, rank)), what.kept, force=False)
        recording.begin_program()
    except GvizError as trouble:
        notice.say(f"gviz: warning: rank {rank} is not recorded: {trouble}")
        return
    sudden_end.keep_the_last(recording)
    kept = what.keeping
    frameworks.follow(recording, phase=kept.phase, module=kept.module, compiled=kept.compiled)
    own_frames.show_stacks()
    _hear_of_errors(recording)


def _names(folder: Path, rank: int) -> Iterator[Path]:
    """What its trace may be called: a program may start the ranks again."""
    found = (folder / trace_of(rank, again) for again in count())
    return (path for path in found if not path.exists())


def _hear_of_errors(recording: record.Recording) -> None:
    """Tell the recording of an error that ends this process, where it is caught and shown: it never leaves Python."""
    for name in ("print_exc", "format_exc"):
        setattr(traceback, name, _telling(getattr(traceback, name), recording))


def _telling(show: Any, recording: record.Recording) -> Any:
    @wraps(show)
    def shown(*arguments: Any, **options: Any) -> Any:
        error = sys.exc_info()[1]
        if error is not None and sys._getframe(1).f_code.co_filename.replace("\\", "/").endswith(_RUNS_A_PROCESS):
            own_frames.leave_out_listening(error.__traceback__)
            recording.fail(error)
        return show(*arguments, **options)

    return shown
