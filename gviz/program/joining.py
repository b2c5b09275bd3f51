"""Processes that a program starts, until they join a process group: nothing but an entry in ``sys.meta_path``.

A worker that only loads data, or computes alone, never does. What joins a group is a rank of a training run, and from
then on recorded as `gviz.program.rank` says.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from functools import partial, wraps
from importlib import import_module
from typing import Any

from gviz.on_import import when_imported

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_GROUPS = "torch.distributed.distributed_c10d"
_JOINED = "_update_default_pg"
"""What PyTorch calls with the group that this process has joined, or None when it has left it."""

_STARTED = "from multiprocessing.spawn ", "from multiprocessing.forkserver "
"""How the line begins that a Python runs which was started to be a process, or to fork processes."""

_waiting = ExitStack()
"""Left by nobody: a process waits as long as it runs."""


def expect_ranks(told: dict[str, Any]) -> None:
    """From now on processes that `multiprocessing` starts, by forking or anew, are recorded when they join a group.

    `told` is an `Order`, as it goes over to another process; this process has a recording already.
    """
    _waiting.enter_context(when_imported(_GROUPS, partial(_listen, told, os.getpid())))
    _waiting.enter_context(when_imported("multiprocessing.util", partial(_tell_new_ones, told)))


def expect_group(told: str) -> None:
    """In a process that was started anew: wait for it to join a group."""
    _waiting.enter_context(when_imported(_GROUPS, partial(_listen, json.loads(told), 0)))


def _listen(told: dict[str, Any], recorded: int) -> None:
    """Hear of the group that is joined, in every process but the one that is `recorded` already."""
    groups = sys.modules[_GROUPS]
    join = getattr(groups, _JOINED, None)
    if join is None:
        return

    @wraps(join)
    def joined(group: Any) -> None:
        join(group)
        if os.getpid() != recorded and hasattr(group, "rank"):
            import_module("gviz.program.rank").begin(told, group.rank())

    setattr(groups, _JOINED, joined)


def _tell_new_ones(told: dict[str, Any]) -> None:
    """Let Python, started anew for processes, wait for their group before it does what it was started for."""
    util = sys.modules["multiprocessing.util"]
    start = util.spawnv_passfds
    begin = f"import sys; sys.path.insert(0, {_ROOT!r})\n" \
            "from gviz.own_process import keep_to_this; keep_to_this()\n" \
            f"from gviz.program.joining import expect_group; expect_group({json.dumps(told)!r})"  # fmt: skip

    @wraps(start)
    def started(path: Any, words: list[Any], files: Any) -> int:
        words = [f"exec({begin!r}, {{}}); {word}" if str(word).startswith(_STARTED) else word for word in words]
        process: int = start(path, words, files)
        return process

    util.spawnv_passfds = started  # type: ignore[attr-defined]
