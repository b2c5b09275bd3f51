"""The state of one recording of a PyTorch program, and of each of its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from gviz import emit
from gviz.adapters.pytorch import private_api
from gviz.adapters.pytorch.cuda_captures import Captures
from gviz.adapters.pytorch.node_identity import Marks
from gviz.adapters.pytorch.private_api import count_dispatch_modes, tracing_state
from gviz.adapters.pytorch.value_capture import Capture
from gviz.adapters.recording_scope import EVERYTHING, RecordingScope
from gviz.emit import Channel
from gviz.events import NOT_SEEN, Edge, Unseen, Warned
from gviz.values.value import Value

clock = time.perf_counter_ns


def _is_traced_by_mode() -> bool:
    """Return whether a dispatch mode of this thread is one with which PyTorch makes graphs."""
    return any(private_api.dispatch_mode(kind) is not None for kind in private_api.dispatch_mode_keys.values())


_NOT_SEEN: dict[Unseen, str] = {
    "composite": "values within a call or rule of several operations (cross_entropy, attention …): shapes are recorded",
    "transform": "tensors within a torch.func transform, or a batch of gradients, have no numbers of their own",
    "compiled": "a compiled region is one node: what it computes within is not recorded (--compiled eager shows it)",
    "forward": "only backward passes are recorded: what runs between them has no values (--phase all shows it)",
    "modules": "only calls of modules that fit {module} are recorded, and what flows between them: no other values",
    "processes": "what processes do that the program starts, DataLoader workers among them: their results are seen "
    "(-o FOLDER/ records those that join a process group, as ranks)",
    "between": "only some iterations are recorded whole (a mark names each); between them the loss and the norm of the "
    "gradients are looked at",
    "replay": "Replays of a CUDA graph run without gviz: what its memory holds after each is recorded, not how it is "
    "computed; a capture has no values",
}
"""What cannot be seen, one sentence for each kind; `module` is replaced by the modules requested."""


@dataclass(slots=True)
class Pass:
    """One backward pass.

    `arrived` has the values that wait at an edge, each with the address it was captured at. `sums` has the sum so far
    where several contributions are expected. `needed` are the nodes that a limited pass reaches (None: all).
    `accumulated` are the leaves that got a gradient, kept if another process may still change it.
    """

    number: int
    retain_graph: bool
    create_graph: bool
    needed: set[int] | None = None
    arrived: dict[Edge, tuple[Value, int]] = field(default_factory=dict)
    by_modules: dict[int, tuple[str, int]] = field(default_factory=dict)
    sums: dict[Edge, torch.Tensor] = field(default_factory=dict)
    accumulated: list[torch.Tensor] | None = None


Step = tuple[Edge, dict[int, int], Sequence[Value | None]]
"""A running step: what ran around it, the number of the incoming gradient by its address, and their values."""


@dataclass(frozen=True, slots=True)
class Update:
    """An optimizer step whose start was recorded, and the versions of its parameters at that time, by id.

    `watched` are the recorded tensors that its operations may change, besides the parameters, and their versions. It is
    None if its operations are observed one by one.
    """

    optimizer: torch.optim.Optimizer
    versions: dict[int, int]
    watched: Sequence[tuple[torch.Tensor, int]] | None = None


class ThreadState(threading.local):
    """The state of a thread: its module calls, backward passes, running step, and optimizer calls.

    A module call that is not recorded is scope 0. `is_in_module` is True inside a requested module call, if only some
    are recorded. `updates` has None for a call of ``step`` within a step, and until a step starts. `steps_unseen` is
    True in a step whose operations are not observed, only its end. `is_making` is True
    while PyTorch runs passes of its own to make CUDA graphs. `is_closed` is True in the backward rule of a compiled
    region, whose operations are not part of the program. `adding` is a pending accumulation into a leaf: a function of
    the value, the value, and its address.
    """

    def __init__(self) -> None:
        self.scopes: list[int] = []
        self.modules: list[tuple[dict[int, str], str]] = []
        self.is_in_module = False
        self.is_making = False
        self.is_closed = False
        self.passes: list[Pass] = []
        self.running_step: Edge = (0, 0)
        self.steps: list[Step] = []
        self.updates: list[Update | None] = []
        self.steps_unseen = False
        self.adding: tuple[Callable[[Value], None], Value, int] | None = None

    def is_updating(self, tensor: torch.Tensor) -> bool:
        """Return whether a step in progress updates this tensor as a parameter and will record it at its end."""
        return any(update is not None and id(tensor) in update.versions for update in self.updates)


class Session:
    """One recording: its channel, what was announced on it, and its threads."""

    def __init__(self, channel: Channel, scope: RecordingScope = EVERYTHING) -> None:
        self.channel = channel
        self.scope = scope
        self.is_partial = bool(scope.module)
        self.hears_operations = scope.phase == "all" and private_api.can_hide
        self.spent = 0
        """Nanoseconds that the program's threads have spent in gviz's hooks."""
        self._not_seen: set[str] = set()
        self.marks = Marks(channel)
        self.captures = Captures()
        self.value = Capture(channel, self.not_seen, self.captures.hides)
        self.thread = ThreadState()
        self.module_paths: dict[int, str] = {}
        """The paths of modules that were called, by identity."""
        self.module_hooks: list[RemovableHandle] = []
        self.edge_of: Callable[[torch.Tensor], Edge]
        """Returns the edge of a tensor and announces it if it is new.

        `attachment` sets it, since it builds on this module.
        """
        self.idle_mode: Any = None
        """A mode of a recording that paused, which could not be left then."""
        self.pass_ended: Callable[[], None] | None = None
        """Called after the end of each pass was recorded."""
        self.look_for_names: Callable[[bool], None] | None = None
        """Switches the observation of module calls for parameter names on or off."""
        self.latest: Pass | None = None
        self._by_task: dict[int, Pass] = {}

    @property
    def is_recording(self) -> bool:
        """Whether this recording is still in progress and the program really computes.

        If PyTorch is making a graph of the calls, gviz's own operations would get into it.
        """
        return (
            emit.channel is self.channel
            and not self.thread.is_making
            and tracing_state() is None
            and not (count_dispatch_modes() and _is_traced_by_mode())
        )

    @property
    def is_outside(self) -> bool:
        """Whether this thread is outside all requested module calls, or in the backward rule of a compiled region."""
        thread = self.thread
        return thread.is_closed or (self.is_partial and not thread.is_in_module)

    @property
    def is_listening(self) -> bool:
        """Whether the recording is in progress, as `is_recording` says, and this thread is not outside of its scope."""
        thread = self.thread
        return (
            emit.channel is self.channel
            and not (thread.is_making or thread.is_closed)
            and (thread.is_in_module or not self.is_partial)
            and tracing_state() is None
            and not (count_dispatch_modes() and _is_traced_by_mode())
        )

    def not_seen(self, what: Unseen) -> None:
        """Report once that something the program does is in no event."""
        if what not in self._not_seen:
            self._not_seen.add(what)
            text = _NOT_SEEN[what].format(module=self.scope.module)
            self.channel.emit(Warned(NOT_SEEN, text, self.channel.stack(), what))

    def report_lack(self, what: str) -> None:
        """Report once what this release of PyTorch does not show."""
        if what not in self._not_seen:
            self._not_seen.add(what)
            text = f"a recording of PyTorch {torch.__version__} lacks {what}"
            self.channel.emit(Warned(NOT_SEEN, text, self.channel.stack(), "version"))

    def current_pass(self) -> Pass | None:
        """Return the pass of the running step, or None if nothing is recorded.

        On the CPU it is the innermost pass of this thread. On a device's thread PyTorch's task number identifies it,
        which is new when the first step of a pass runs.
        """
        thread = self.thread
        if (  # `is_recording`, without a call: this runs at each hook
            emit.channel is not self.channel
            or thread.is_making
            or tracing_state() is not None
            or (count_dispatch_modes() and _is_traced_by_mode())
        ):
            return None
        passes = thread.passes
        if passes:
            return passes[-1]
        task = private_api.task_number()
        if task not in self._by_task and self.latest is not None:
            self._by_task[task] = self.latest
        return self._by_task.get(task)

    def forget(self, ended: Pass) -> None:
        """Forget a pass that has ended."""
        for task in [task for task, known in self._by_task.items() if known is ended]:
            del self._by_task[task]
        if self.latest is ended:
            self.latest = None
