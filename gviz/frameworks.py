"""The frameworks that a recording observes: the built-in engine always, those of `FOREIGN` if a program imports them.

A framework consists of an adapter, which emits the events of `gviz.events`, and its entry in that table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from gviz.adapters.recording_scope import Compiled, Phase, RecordingScope
from gviz.errors import GvizError
from gviz.rich_representation import debugger_front
from gviz.system import notice
from gviz.system.gc_pause import seldom_in_full, uncollected
from gviz.system.import_hook import when_imported
from gviz.trace.file.retention_policy import Until
from gviz.trace.recording import record as recording
from gviz.trace.recording.record import ALL, OWN, Kept, NestedRecording, Recording, Window
from gviz.values.value import Keep

if TYPE_CHECKING:
    import torch

    ForeignTensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, slots=True)
class Framework:
    """A package for tensor computation.

    `adapter` is a module whose ``Attachment(channel, model, scope)`` observes the package within a ``with`` block. Its
    ``spent`` is the time in nanoseconds that this took on the program's threads, and ``node_of`` returns a tensor's
    node. `monitor` is a module whose ``Monitored(attached, budget, write, pause)`` does so within a budget.
    `existing_graph` is a module whose ``events_of_graph`` describes the existing graph of objects that are tensors
    (``is_tensor``).
    """

    package: str
    name: str
    adapter: str
    monitor: str
    existing_graph: str
    install: str

    @property
    def imported(self) -> bool:
        """Whether the program has imported it. A different module under its name does not count."""
        module = sys.modules.get(self.package)
        return module is not None and module.__name__ == self.package

    @property
    def possible(self) -> bool:
        """Whether the program has imported it, or still can."""
        return self.imported or (self.package not in sys.modules and find_spec(self.package) is not None)

    def owns(self, thing: object) -> bool:
        """Return whether an object's class comes from this package, directly or through a base class."""
        return any(kind.__module__.partition(".")[0] == self.package for kind in type(thing).__mro__)

    def missing(self) -> GvizError:
        """Return the error if it is required and not installed."""
        hint = f"{self.install}, or --engine builtin for the built-in engine"
        return GvizError(f"{self.name} is not installed", hint=hint, exit_code=4)

    @contextmanager
    def attached(self, began: Recording, model: Any, scope: RecordingScope) -> Iterator[object]:
        """Observe the framework for a recording."""
        budget = scope.new_budget()
        with uncollected():  # a collection looks at all objects of the framework, which takes longer than the imports
            adapter = import_module(self.adapter)
            monitor = import_module(self.monitor) if budget is not None else None
        attached = adapter.Attachment(began.channel, model, scope)
        if monitor is not None:
            write, pause = partial(began.set_fact, "monitored"), partial(_pause, began)
            attached = monitor.Monitored(attached, budget, write, pause)
        rarer = seldom_in_full() if budget is None else nullcontext()  # a pausing recording makes few objects
        with rarer, attached as it:
            began.add_lookup(it.node_of)
            if budget is None:
                began.add_announcer(it.announce)
            yield it
        began.set_fact("listening", str(it.spent))


TORCH = Framework(
    "torch",
    "PyTorch",
    "gviz.adapters.pytorch.attachment",
    "gviz.adapters.pytorch.monitored_training",
    "gviz.adapters.pytorch.existing_graph",
    "pip install 'gviz[torch]'",
)

FOREIGN: Sequence[Framework] = (TORCH,)


def record(
    path: str | os.PathLike[str] | None = None,
    *,
    model: torch.nn.Module | None = None,
    limit: int | None = None,
    keep: Keep = "whole",
    source: bool = True,
    force: bool = False,
    window: Window = ALL,
    framework: str = "",
    compiled: Compiled = "opaque",
    phase: Phase = "all",
    module: str = "",
    budget: str | float = "",
    from_iteration: str | int = "",
    pause_on: str = "",
    last: int | str | None = None,
    max_size: int | str | None = None,
    until: Until = "",
    share: bool = False,
    older: str | None = None,
) -> Recording | NestedRecording:
    """Record what happens in a ``with`` block to a trace; without a path, to one in the user's cache folder.

    Arrays are kept whole up to `limit` bytes (default 1024), larger ones as statistics; `keep` can reduce that further.
    `source` stores the text of the program's files in the trace. An existing file raises GvizError unless `force` is
    True. If PyTorch is imported, before or within the block, its operations are recorded; with `model` its parameters
    have names from the start.
    For a long run, `last` keeps only the last iterations (``3``) or marks (``"3 marks"``), and `max_size` keeps only
    that many bytes of the newest events (``"500M"``). `older` names iterations before the last ones (3 without `last`)
    that are kept as well: ``"first"``, ``"findings"`` (around a nan, an error or an alarm), ``"every 100"`` and
    ``"thinned"`` (fewer and fewer with their age; with `max_size`, as many as fit). With `until` (``"nan"``, ``"inf"``)
    the recording ends with the first of these. Only the owner can read the trace; with `share` the umask decides.

    The following apply to PyTorch. `phase` ``"backward"`` records backward passes only, at a fraction of the cost.
    `module` (a path or class, with ``*``) records only calls of those modules. `compiled` ``"eager"`` runs the
    functions that ``torch.compile`` made as they are written.
    `budget` (``0.05``, ``"5%"``) records whole iterations as often as this share of the run time allows, and watches
    the loss and the norm of the gradients between them. `pause_on` (``"nan"``, ``"inf"``, or ``"alarm"`` for anything
    that it reports) then pauses the program and opens the debugger in its terminal. `from_iteration` starts the
    recording at an iteration; each ends with an optimizer step.
    Raises GvizError for an invalid option, and for a path that cannot be a trace. If the system does not allow writing,
    as on a full disk, a warning is issued and the block runs unrecorded.
    """
    if not (model is None or hasattr(model, "_parameters") or any(one.owns(model) for one in FOREIGN)):
        hint = "it is a torch.nn.Module, whose parameters get their names"
        raise GvizError(f"model cannot be of type {type(model).__name__}", hint=hint, exit_code=2)
    scope = RecordingScope(phase, module, compiled, budget, from_iteration, pause_on)
    if (scope.is_limited or scope.new_budget()) and not any(one.possible for one in FOREIGN):
        raise GvizError(
            "phase, module, budget and from_iteration are for PyTorch",
            why="the built-in engine is recorded whole",
            exit_code=2,
        )
    present = next((one.package for one in FOREIGN if one.imported), OWN)
    kept = Kept(limit, keep, source, window, last, max_size, until, share, older)
    new_recording = recording.record(path, kept, force=force, framework=framework or present)
    for one in FOREIGN:
        if one.imported or one.owns(model):
            new_recording.with_context(partial(one.attached, model=model, scope=scope))
        elif one.package not in sys.modules:
            new_recording.with_context(partial(_when_imported, one, scope))
    return new_recording


def attach(
    model: torch.nn.Module | None = None, path: str | os.PathLike[str] | None = None, **options: Any
) -> Recording | NestedRecording:
    """Record until the program ends or ``close()`` is called on the result; options as for `record`.

    The result can also be used in a ``with`` statement, whose end then ends the recording.
    """
    return record(path, model=model, **options).__enter__()


def _pause(began: Recording) -> bool:
    """Pause the program at an alarm and open the debugger. Return whether it may pause again."""
    return debugger_front().pause_monitored(began)


def events_of_graph(tensors: Sequence[object], params: Any = ()) -> list[Any] | None:
    """Return the existing graph of another framework's tensors, as events; None for anything else."""
    for one in FOREIGN:
        if tensors and one.imported and all(map(one.owns, tensors)):
            graph = import_module(one.existing_graph)
            if all(map(graph.is_tensor, tensors)):
                return list(graph.events_of_graph(tensors, params))
    return None


def check_scope(**scope: str) -> None:
    """Raise GvizError for an option that `follow` would refuse."""
    RecordingScope(**scope)


def follow(began: Recording, **scope: Any) -> None:
    """Record what is requested of a foreign framework once the program imports it."""
    for one in FOREIGN:
        began.join(_when_imported(one, RecordingScope(**scope), began))


def _when_imported(framework: Framework, scope: RecordingScope, began: Recording) -> AbstractContextManager[None]:
    def join() -> None:
        if not began.is_open:
            return
        try:
            began.set_fact("framework", framework.package)
            began.join(framework.attached(began, None, scope))
        except Exception as trouble:  # the program continues, whatever the error
            why = f"{type(trouble).__name__}: {trouble}"
            notice.show(f"gviz: warning: {framework.name}'s operations cannot be recorded: {why}")

    return when_imported(framework.package, join)
