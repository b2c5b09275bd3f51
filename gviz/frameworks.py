"""Which frameworks a recording listens to: gviz's own engine always, those of `FOREIGN` where a program imports them.

A framework is an adapter, which says the events of `gviz.events`, and its line in that table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from gviz.adapters.recording_scope import Compiled, Phase, Wanted
from gviz.errors import GvizError
from gviz.system import notice
from gviz.system.import_hook import when_imported
from gviz.trace.file.bounds import Until
from gviz.trace.recording import record as recording
from gviz.trace.recording.record import ALL, OWN, Kept, Recording, Window, Within
from gviz.values.value import Keep

if TYPE_CHECKING:
    import torch

    ForeignTensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, slots=True)
class Framework:
    """A package that other people's programs compute with.

    `adapter` is a module whose ``Attached(channel, model, wanted)`` listens to it inside a ``with`` block; `spent` is
    then how many nanoseconds of the program's threads that took, `node_of` which node one of its tensors is.
    `behind` is a module whose ``events_behind`` says the graph behind what ``is_tensor``, as it stands.
    """

    package: str
    name: str
    adapter: str
    behind: str
    install: str

    @property
    def imported(self) -> bool:
        """Whether the program has imported it; another package may stand in its place."""
        found = sys.modules.get(self.package)
        return found is not None and found.__name__ == self.package

    @property
    def possible(self) -> bool:
        """Whether the program has imported it, or still can."""
        return self.imported or (self.package not in sys.modules and find_spec(self.package) is not None)

    def owns(self, thing: object) -> bool:
        """Whether a model is made of its modules, or a thing is of one of its types."""
        return any(kind.__module__.partition(".")[0] == self.package for kind in type(thing).__mro__)

    def missing(self) -> GvizError:
        """What to say where it is asked for and not installed."""
        hint = f"{self.install}, or --engine builtin for gviz's own engine"
        return GvizError(f"{self.name} is not installed", hint=hint, exit_code=4)

    @contextmanager
    def attached(self, began: Recording, model: Any, wanted: Wanted) -> Iterator[object]:
        """Listen to it for a recording."""
        with import_module(self.adapter).Attached(began.channel, model, wanted) as it:
            began.known_by(it.node_of)
            yield it
        began.tell("listening", str(it.spent))


TORCH = Framework(
    "torch",
    "PyTorch",
    "gviz.adapters.pytorch.attachment",
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
    last: int | str | None = None,
    max_size: int | str | None = None,
    until: Until = "",
    share: bool = False,
) -> Recording | Within:
    """Record what happens in a ``with`` block to a trace; without a path, to one in the user's cache folder.

    Arrays are kept whole up to `limit` bytes (1024 without one), larger ones as statistics; `keep` asks for less.
    `source` keeps the text of the program's files in the trace. An existing file is refused with GvizError unless
    `force`. Where PyTorch is imported, before or within the block, its operations are recorded; `model` gives its
    parameters their names from the start.
    Of a long run only the `last` iterations (``3``) or marks (``"3 marks"``) are kept, and no more than `max_size`
    bytes (``"500M"``) of the newest. With `until` (``"nan"``, ``"inf"``) the recording ends with the first of these.
    Only its owner can read the trace; `share` leaves that to the umask.

    Of PyTorch, `phase` ``"backward"`` records passes alone, at a fraction of the cost, and `module` (a path or class,
    with ``*``) what its calls do; `compiled` ``"eager"`` runs what ``torch.compile`` made as it is written.
    GvizError for what an option does not know, and for a path at which no trace can be. Where the system does not let
    one be written, as on a full disk, a warning is given, and the block runs unrecorded.
    """
    if not (model is None or hasattr(model, "_parameters") or any(one.owns(model) for one in FOREIGN)):
        hint = "it is a torch.nn.Module, whose parameters get their names"
        raise GvizError(f"model cannot be of type {type(model).__name__}", hint=hint, exit_code=2)
    wanted = Wanted(phase, module, compiled)
    if wanted.is_limited and not any(one.possible for one in FOREIGN):
        raise GvizError("phase and module are for PyTorch", why="gviz's own engine is recorded whole", exit_code=2)
    present = next((one.package for one in FOREIGN if one.imported), OWN)
    kept = Kept(limit, keep, source, window, last, max_size, until, share)
    made = recording.record(path, kept, force=force, framework=framework or present)
    for one in FOREIGN:
        if one.imported or one.owns(model):
            made.along_with(partial(one.attached, model=model, wanted=wanted))
        elif one.package not in sys.modules:
            made.along_with(partial(_when_imported, one, wanted))
    return made


def attach(
    model: torch.nn.Module | None = None, path: str | os.PathLike[str] | None = None, **options: Any
) -> Recording | Within:
    """Record from here to the end of the program, or to ``close()`` of what this returns; options as for `record`."""
    return record(path, model=model, **options).__enter__()


def events_behind(tensors: Sequence[object], params: Any = ()) -> list[Any] | None:
    """The graph behind tensors of a foreign framework as it stands, as events; None for anything else."""
    for one in FOREIGN:
        if tensors and one.imported and all(map(one.owns, tensors)):
            behind = import_module(one.behind)
            if all(map(behind.is_tensor, tensors)):
                return list(behind.events_behind(tensors, params))
    return None


def follow(began: Recording, **wanted: str) -> None:
    """From the moment the program imports a foreign framework, record what is wanted of it; until then nothing."""
    for one in FOREIGN:
        began.join(_when_imported(one, Wanted(**wanted), began))


def _when_imported(framework: Framework, wanted: Wanted, began: Recording) -> AbstractContextManager[None]:
    def join() -> None:
        if not began.is_open:
            return
        try:
            began.tell("framework", framework.package)
            began.join(framework.attached(began, None, wanted))
        except Exception as trouble:  # whatever it is, the program goes on
            why = f"{type(trouble).__name__}: {trouble}"
            notice.say(f"gviz: warning: {framework.name}'s operations cannot be recorded: {why}")

    return when_imported(framework.package, join)
