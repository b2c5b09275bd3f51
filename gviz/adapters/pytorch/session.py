"""What one recording of a PyTorch program knows, and what it knows of each thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch.utils.hooks import RemovableHandle

from gviz import emit
from gviz.adapters.pytorch import private_api
from gviz.adapters.pytorch.cuda_device import Captures
from gviz.adapters.pytorch.node_identity import Marks
from gviz.adapters.pytorch.values import Capture
from gviz.adapters.recording_scope import EVERYTHING, Wanted
from gviz.emit import Channel
from gviz.events import NOT_SEEN, Edge, Unseen, Warned
from gviz.values.value import Value

clock = time.perf_counter_ns


def _is_traced_by_mode() -> bool:
    """Whether one of the dispatch modes of this thread is one of those by which PyTorch makes graphs."""
    return any(private_api.dispatch_mode(kind) is not None for kind in private_api.dispatch_mode_keys.values())


_NOT_SEEN: dict[Unseen, str] = {
    "composite": "values within a call or rule of several operations (cross_entropy, attention …): shapes are recorded",
    "transform": "tensors within a torch.func transform, or a batch of gradients, have no numbers of their own",
    "compiled": "a compiled region is one node: what it computes within is not recorded (--compiled eager shows it)",
    "forward": "only backward passes are recorded: what runs between them has no values (--phase all shows it)",
    "modules": "only calls of modules that fit {module} are recorded, and what flows between them: no other values",
    "processes": "what processes do that the program starts, DataLoader workers among them: their results are seen "
    "(-o FOLDER/ records those that join a process group, as ranks)",
    "replay": "Replays of a CUDA graph run without gviz: what its memory holds after each is recorded, not how it is "
    "computed; a capture has no values",
}
"""What cannot be seen, in a sentence for each kind; `module` says which modules are asked for."""


@dataclass(slots=True)
class Pass:
    """One backward pass. `arrived` are the values that wait at a place, each with the address it was captured at.

    `sums` holds the sum so far where several contributions are expected. `needed` are the nodes to which a limited
    pass goes (None: to all). `accumulated` are the leaves that got a gradient, where another process may still change
    it.
    """

    number: int
    retain_graph: bool
    create_graph: bool
    needed: set[int] | None = None
    arrived: dict[Edge, tuple[Value, int]] = field(default_factory=dict)
    sums: dict[Edge, torch.Tensor] = field(default_factory=dict)
    accumulated: list[torch.Tensor] | None = None


Step = tuple[Edge, dict[int, int], Sequence[Value | None]]
"""A step that runs: what ran around it, which of the gradients it was given lies at an address, and their values."""


@dataclass(frozen=True, slots=True)
class Update:
    """A step of an optimizer that was said to begin, and the versions of its parameters at that moment, by identity."""

    optimizer: torch.optim.Optimizer
    versions: dict[int, int]


class ThreadState(threading.local):
    """Where a thread is: the module calls it is in, the backward passes, the step that runs, calls of optimizers.

    A module call that is not recorded is scope 0. `is_within` says that the thread is in one of the calls that are
    asked for, where only some are. `updates` has None for a call of ``step`` within a step, and while none has begun.
    `is_making` says that PyTorch runs passes of its own here, to make CUDA graphs. `is_closed` says that it is in the
    rule of a compiled region, whose operations are no part of the program. `adding` says that a gradient was added to a
    leaf, of which it is given the value; the last is its address.
    """

    def __init__(self) -> None:
        self.scopes: list[int] = []
        self.modules: list[tuple[dict[int, str], str]] = []
        self.is_within = False
        self.is_making = False
        self.is_closed = False
        self.passes: list[Pass] = []
        self.during: Edge = (0, 0)
        self.steps: list[Step] = []
        self.updates: list[Update | None] = []
        self.adding: tuple[Callable[[Value], None], Value, int] | None = None

    def is_updating(self, tensor: torch.Tensor) -> bool:
        """Whether a step is in progress that changes a tensor as a parameter, and says so when it is over."""
        return any(update is not None and id(tensor) in update.versions for update in self.updates)


class Session:
    """One recording: the channel, what was announced on it, and the threads that speak."""

    def __init__(self, channel: Channel, wanted: Wanted = EVERYTHING) -> None:
        self.channel = channel
        self.wanted = wanted
        self.is_partial = bool(wanted.module)
        self.hears_operations = wanted.phase == "all" and private_api.can_hide
        self.spent = 0
        """Nanoseconds that threads of the program have spent on being listened to."""
        self._not_seen: set[str] = set()
        self.marks = Marks(channel)
        self.captures = Captures()
        self.value = Capture(channel, self.not_seen, self.captures.hides)
        self.thread = ThreadState()
        self.module_hooks: list[RemovableHandle] = []
        self.edge_of: Callable[[torch.Tensor], Edge]
        """Announces a tensor if nobody has; given by who knows how, which builds on this."""
        self.look_for_names: Callable[[bool], None] | None = None
        """Says whether the next module calls are to be looked at for their parameters' names."""
        self.latest: Pass | None = None
        self._by_task: dict[int, Pass] = {}

    @property
    def is_heard(self) -> bool:
        """Whether this recording is still the one in progress, and the program computes.

        Where PyTorch makes a graph of what is called, what gviz computes would get into it.
        """
        return (
            emit.channel is self.channel
            and not self.thread.is_making
            and private_api.tracing_state() is None
            and not (private_api.count_dispatch_modes() and _is_traced_by_mode())
        )

    @property
    def is_outside(self) -> bool:
        """Whether this thread is in no module call that is asked for, or in the rule of a compiled region."""
        thread = self.thread
        return thread.is_closed or (self.is_partial and not thread.is_within)

    def not_seen(self, what: Unseen) -> None:
        """Say once that something the program does is in no event."""
        if what not in self._not_seen:
            self._not_seen.add(what)
            text = _NOT_SEEN[what].format(module=self.wanted.module)
            self.channel.say(Warned(NOT_SEEN, text, self.channel.stack(), what))

    def report_lack(self, what: str) -> None:
        """Say once what this release of PyTorch does not show to the recording."""
        if what not in self._not_seen:
            self._not_seen.add(what)
            text = f"a recording of PyTorch {torch.__version__} lacks {what}"
            self.channel.say(Warned(NOT_SEEN, text, self.channel.stack(), "version"))

    def current_pass(self) -> Pass | None:
        """The pass that the running step belongs to; None where nobody listens.

        On the CPU it is the innermost one of this thread. On a device's thread PyTorch's task number tells, which is
        new when the first step of a pass runs.
        """
        if not self.is_heard:
            return None
        passes = self.thread.passes
        if passes:
            return passes[-1]
        task = private_api.task_number()
        if task not in self._by_task and self.latest is not None:
            self._by_task[task] = self.latest
        return self._by_task.get(task)

    def forget(self, ended: Pass) -> None:
        """A pass is over."""
        for task in [task for task, known in self._by_task.items() if known is ended]:
            del self._by_task[task]
        if self.latest is ended:
            self.latest = None
