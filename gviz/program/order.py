"""What the recording process is told to do; goes over as one command line argument."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from gviz import own_process

if TYPE_CHECKING:
    from gviz.trace.file.ending import Until
    from gviz.values import Keep


Engine = Literal["auto", "builtin", "torch"]
"""What ``import torch`` means: gviz's own engine, PyTorch, or the first only where PyTorch is not installed."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How much of a program is kept.

    Of arrays: whole up to `limit` bytes (None: the recorder's own), less if `keep` asks for it. Of time: between the
    marks `first` and `last`; of a long run the `newest` parts and bytes, as `gviz.trace.file.bounds` reads them (empty:
    all); `until` is what ends it (a nan). Of a PyTorch program: `phase`, `module` and `compiled`.
    """

    keep: Keep = "whole"
    limit: int | None = None
    first: str = ""
    last: str = ""
    compiled: str = "opaque"
    phase: str = "all"
    module: str = ""
    until: Until = ""
    newest: str = ""
    max_size: str = ""

    @property
    def bounded(self) -> bool:
        """Whether the beginning of a long run is dropped."""
        return bool(self.newest or self.max_size)


WHOLE = Keeping()


@dataclass(frozen=True, slots=True)
class Order:
    """Where the trace goes, which engine ``import torch`` means, whether a module is run, how much is kept.

    `replace` lets the new trace take the place of one that is there, once everything before the recording has
    succeeded. `parent` is the process that gives the order: the program ends with it. `live` is the socket of the
    debugger that holds the program. `graph_breaks`: what a static graph could not hold is noted, too.
    """

    trace: str
    engine: Engine = "auto"
    as_module: bool = False
    keep_source: bool = True
    keeping: Keeping = WHOLE
    replace: bool = False
    parent: int = 0
    live: str = ""
    graph_breaks: bool = False


def command(order: Order, argv: Sequence[str]) -> list[str]:
    """What starts the recording process: this interpreter with its flags, the order, the program and its arguments."""
    import subprocess  # the recording process, which only reads orders, is spared it

    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    return own_process.command("gviz.program.child", [json.dumps(asdict(order)), *argv], flags=flags)


def parse(text: str) -> Order:
    """An order from its argument."""
    told = json.loads(text)
    return Order(**(told | {"keeping": Keeping(**told["keeping"])}))
