"""The request to the recording process, passed in its environment, since its command line belongs to the program."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from gviz.errors import GvizError
from gviz.program.rank_trace_files import MAIN
from gviz.system.processes import Start
from gviz.values.plain_text import shown

if TYPE_CHECKING:
    from gviz.trace.file.retention_policy import Until
    from gviz.trace.recording.record import Kept
    from gviz.values.value import Keep

_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start")

Engine = Literal["auto", "builtin", "torch"]
"""What ``import torch`` means: the built-in engine, PyTorch, or the engine only if PyTorch is not installed."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How much of a program is kept.

    Arrays: whole up to `limit` bytes (None: the recorder's default), or less according to `keep`. Time: between the
    marks `first` and `last`. Long runs: the `newest` parts, some `older` ones and at most `max_size` bytes, in the
    syntax of `gviz.trace.file.retention_policy` (empty: everything); `until` ends the recording (for example at a nan).
    PyTorch programs: `phase`, `module`, `compiled`, `budget`, `from_iteration` and `pause_on`.
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
    older: str = ""
    budget: str = ""
    from_iteration: str = ""
    pause_on: str = ""

    @property
    def of_pytorch(self) -> dict[str, str]:
        """What of a PyTorch program is recorded, as `gviz.frameworks` takes it."""
        names = ("phase", "module", "compiled", "budget", "from_iteration", "pause_on")
        return {name: getattr(self, name) for name in names}

    @property
    def bounded(self) -> bool:
        """Whether parts of a long run are dropped."""
        return bool(self.newest or self.max_size or self.older)


WHOLE = Keeping()


@dataclass(frozen=True, slots=True)
class Order:
    """Where the trace is written, which engine ``import torch`` means, whether a module is run, how much is kept.

    `share` lets the umask decide who may read the trace, instead of only its owner. `replace` replaces an existing
    trace, once everything before the recording has succeeded. `parent` is the process that gives the order; the program
    ends with it. `live` is the socket of the debugger that controls the program. `graph_breaks`: also record what a
    static graph could not contain.
    """

    trace: str
    engine: Engine = "auto"
    as_module: bool = False
    keep_source: bool = True
    share: bool = False
    keeping: Keeping = WHOLE
    replace: bool = False
    parent: int = 0
    live: str = ""
    graph_breaks: bool = False

    @property
    def kept(self) -> Kept:
        """The recording options for this order."""
        from gviz.trace.recording.record import Kept, Window

        how = self.keeping
        window, last, size = Window(how.first, how.last), how.newest or None, how.max_size or None
        older = how.older or None
        return Kept(how.limit, how.keep, self.keep_source, window, last, size, how.until, self.share, older)

    @property
    def records_ranks(self) -> bool:
        """Whether processes that the program starts are recorded too, next to its own trace `main.gviz`."""
        return os.path.basename(self.trace) == MAIN


def start(order: Order, argv: Sequence[str]) -> Start:
    """Return how to start the recording process: Python as called by hand, with the options of this interpreter.

    Raises GvizError if gviz is in a folder whose name cannot be part of ``PYTHONPATH``.
    """
    if os.pathsep in _START:
        why, hint = f"PYTHONPATH cannot contain a name with {os.pathsep}", "install gviz in another folder"
        raise GvizError(f"gviz cannot record programs from {shown(_START)}", why=why, hint=hint)
    module = ["-m"] if order.as_module else []
    return Start([sys.executable, *interpreter_options(), *module, *argv], _environment(order, argv))


def _environment(order: Order, argv: Sequence[str]) -> dict[str, str]:
    """Return the environment of that process. It contains the order, and is restored before the program starts."""
    present = dict(os.environ)
    left = {name: text for name, text in present.items() if not (sys.flags.ignore_environment and _is_for_python(name))}
    begin = {"PYTHONPATH": os.pathsep.join(filter(None, [_START, left.get("PYTHONPATH")]))}
    changed = {name: present.get(name) for name in {*present} - {*left} | {*begin}}
    request = json.dumps({"order": asdict(order), "argv": argv, "environment": changed})
    return left | begin | {"GVIZ_PROGRAM": request}


def _is_for_python(name: str) -> bool:
    return name.startswith("PYTHON")


def read(request: dict[str, Any]) -> Order:
    """Return an order from its serialized form."""
    return Order(**(request | {"keeping": Keeping(**request["keeping"])}))


_NAMES_THE_PROGRAM, _TAKES_A_VALUE = "cm", "WX"
_OTHERWISE = {"-I": ["-s", "-P"], "-E": [], "-S": [], "-i": []}
"""An isolated process, without environment or site, could not be started to record; -I is replaced by its parts."""


def interpreter_options() -> list[str]:
    """Return the options this interpreter was called with, for one that runs a program in the same way."""
    return [word for flag in _options_in(sys.orig_argv[1:]) for word in _OTHERWISE.get(flag, [flag])]


def _options_in(words: Sequence[str]) -> Iterator[str]:
    """Yield one option at a time: several may share a word, and a value may be a separate word."""
    left = iter(words)
    for word in left:
        if word.startswith("--") and word != "--":
            yield from (word, next(left, ""))  # the only such option that runs a program has a value
            continue
        if not word.startswith("-") or word in ("-", "--"):
            return
        for place, letter in enumerate(word[1:], 2):
            if letter in _NAMES_THE_PROGRAM:
                return
            if letter in _TAKES_A_VALUE:
                yield f"-{letter}{word[place:] or next(left, '')}"
                break
            yield f"-{letter}"


def refuse_scope(**options: str) -> None:
    """Raise GvizError for text that does not describe a part of a PyTorch program, before the program runs."""
    from gviz.frameworks import check_scope  # which loads much that this module's other readers do without

    check_scope(**options)
