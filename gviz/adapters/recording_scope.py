"""What of a program in a foreign framework is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from gviz.errors import GvizError, refuse_unknown

Phase = Literal["all", "backward"]
Compiled = Literal["opaque", "eager"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """`phase` is ``all``, or ``backward`` for passes alone. `module` limits it to module calls of a path or class.

    `compiled` says what becomes of compiled regions: ``opaque`` keeps them so, ``eager`` runs them as written.
    Raises GvizError for another word.
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
        """Whether a part of the program is left out."""
        return self.phase != "all" or bool(self.module)

    def has_module(self, path: str, kind: str) -> bool:
        """Whether the call of a module is what `module` asks for: by its path, with its model's class or without."""
        within = path.partition(".")[2]
        return any(name and fnmatchcase(name, self.module) for name in (path, within, kind))


EVERYTHING = Wanted()
