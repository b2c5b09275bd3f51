"""Which parts of a program in another framework are recorded."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from gviz.errors import GvizError, refuse_unknown

Phase = Literal["all", "backward"]
Compiled = Literal["opaque", "eager"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to record. `phase` is ``all``, or ``backward`` for backward passes only.

    `module` limits the recording to calls of the modules with this path or class. `compiled` is the treatment of
    compiled regions: ``opaque`` leaves them compiled, ``eager`` runs them as written. Raises GvizError for any other
    word.
    """

    phase: str = "all"
    module: str = ""
    compiled: str = "opaque"

    def __post_init__(self) -> None:
        refuse_unknown("phase", self.phase, get_args(Phase))
        if not isinstance(self.module, str):
            hint = "it is the path or class of a module: encoder.*, Conv2d"
            raise GvizError(f"module is a text, not {type(self.module).__name__}", hint=hint, exit_code=2)
        refuse_unknown("compiled", self.compiled, get_args(Compiled))

    @property
    def is_limited(self) -> bool:
        """Whether a part of the program is left out of the recording."""
        return self.phase != "all" or bool(self.module)

    def has_module(self, path: str, kind: str) -> bool:
        """Whether `module` selects this module call: by class, or by path with or without the model's class."""
        within = path.partition(".")[2]
        return any(name and fnmatchcase(name, self.module) for name in (path, within, kind))


EVERYTHING = Wanted()
