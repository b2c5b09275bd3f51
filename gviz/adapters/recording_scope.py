"""Which parts of a program in another framework are recorded."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from gviz.adapters.monitor_budget import Budget, pauses_of, share_of
from gviz.errors import GvizError, refuse_unknown

Phase = Literal["all", "backward"]
Compiled = Literal["opaque", "eager"]


@dataclass(frozen=True, slots=True)
class RecordingScope:
    """What to record. `phase` is ``all``, or ``backward`` for backward passes only.

    `module` limits the recording to calls of the modules with this path or class. `compiled` is the treatment of
    compiled regions: ``opaque`` leaves them compiled, ``eager`` runs them as written. `budget` (``5%``, ``0.05``) is
    the share of the run time that recording may take; then only some iterations are recorded. `from_iteration` starts
    the recording at an iteration. `pause_on` (``nan, inf, alarm``) pauses the program at such alarms of a recording
    with a budget. Raises GvizError for any other word.
    """

    phase: str = "all"
    module: str = ""
    compiled: str = "opaque"
    budget: str | float = ""
    from_iteration: str | int = ""
    pause_on: str = ""

    def __post_init__(self) -> None:
        refuse_unknown("phase", self.phase, get_args(Phase))
        if not isinstance(self.module, str):
            hint = "it is the path or class of a module: encoder.*, Conv2d"
            raise GvizError(f"module is a text, not {type(self.module).__name__}", hint=hint, exit_code=2)
        refuse_unknown("compiled", self.compiled, get_args(Compiled))
        if self.pause_on and self.budget == "":
            raise GvizError("pause_on needs a budget", why="only such a recording has alarms", exit_code=2)
        self.new_budget()

    def new_budget(self) -> Budget | None:
        """Return a new budget, where the recording pauses between iterations."""
        if self.from_iteration not in ("", 1, "1"):
            text = str(self.from_iteration)
            if not text.isdecimal() or not int(text):
                raise GvizError(f"{text[:40]!r} is no iteration", hint="they are counted from 1", exit_code=2)
            if self.pause_on:
                why = "a recording from an iteration on has no alarms"
                raise GvizError("pause_on and from_iteration cannot be combined", why=why, exit_code=2)
            return Budget(first=int(text))
        return None if self.budget == "" else Budget(share_of(self.budget), pauses=pauses_of(self.pause_on))

    @property
    def is_limited(self) -> bool:
        """Whether a part of the program is left out of the recording."""
        return self.phase != "all" or bool(self.module)

    def has_module(self, path: str, kind: str) -> bool:
        """Return whether `module` selects this module call: by class, or by path with or without the model's class."""
        inner_path = path.partition(".")[2]
        return any(name and fnmatchcase(name, self.module) for name in (path, inner_path, kind))


EVERYTHING = RecordingScope()
