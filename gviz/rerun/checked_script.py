"""A script under construction; the built-in engine runs each statement as soon as it is written.

Text of a recording is never executed. Its names become safe identifiers, and its numbers are parsed. A statement is
parsed first, and refused if it is more than arithmetic on tensors.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import inf, isfinite, nan
from pathlib import Path
from threading import RLock
from typing import Any

import gviz.engine as torch
from gviz import emit
from gviz.engine.modes import enable_grad
from gviz.errors import GvizError
from gviz.source import parsing
from gviz.trace.graph_state import NodeInfo
from gviz.values.plain_text import clipped

IMPORTS = """\
from math import inf, isfinite, nan

try:
    import torch
except ImportError:
    import gviz.engine as torch
"""
SAME = """\
def same(name, given, recorded):
    eps = torch.finfo(recorded.dtype).eps if recorded.is_floating_point() else 0.0
    largest = max([abs(number) for number in recorded.flatten().tolist() if isfinite(number)], default=0.0)
    fits = given is not None and (given.shape, given.dtype) == (recorded.shape, recorded.dtype)
    if fits:
        given, recorded = given.detach().double(), recorded.double()
        close = torch.allclose(given, recorded, rtol=eps**0.5, atol=eps**0.5 * largest / 10, equal_nan=True)
        rounding = torch.allclose(given, recorded, rtol=0.0, atol=10 * eps) and largest <= 10 * eps
    if fits and close:
        print(f"{name} is as recorded")
    else:
        print(f"{name} is {given}, recorded: {recorded}{', which is 0 but for rounding' if fits and rounding else ''}")
    return fits and (close or rounding)
"""
"""Compares a tensor with the recorded one, to half of the digits of its largest element."""

TAKEN = frozenset({"torch", "inf", "isfinite", "nan", "same", "results", "__builtins__"})
"""Names with a meaning in a script, in addition to those of Python."""

_ARITHMETIC = (
    *(ast.Module, ast.Expr, ast.Assign, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.Call),
    *(ast.keyword, ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop),
    ast.expr_context,
)


class CheckedScript:
    """Statements, and the values of their names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.output: list[str] = []
        builtins = {"abs": abs, "max": max, "print": self.output.append}
        self._names = {"torch": torch, "inf": inf, "nan": nan, "isfinite": isfinite, "__builtins__": builtins}
        exec(SAME, self._names)

    def __getitem__(self, name: str) -> Any:
        return self._names[name]

    def assign(self, name: str, text: str, note: str = "") -> None:
        """Write and run an assignment. Raises GvizError if the engine refuses it."""
        self.bind(name, text, self.result(text), note)

    def bind(self, name: str, text: str, value: Any, note: str = "") -> None:
        """Write an assignment whose result is already known."""
        self._names[name] = value
        self.lines.append(f"{name} = {text}{f'  # {note}' if note and chr(10) not in text else ''}")

    def do(self, statement: str) -> None:
        """Write and run a statement. Raises GvizError if the engine refuses it."""
        with _refusing(statement):
            exec(statement, self._names)
        self.lines.append(statement)

    def result(self, text: str) -> Any:
        """Return the value of an expression now. Raises GvizError if the engine refuses it."""
        with _refusing(text):
            return eval(text, self._names)

    def result_or_none(self, text: str) -> Any:
        """Return the value of an expression now, None if the engine refuses it."""
        try:
            return self.result(text)
        except GvizError:
            return None


@contextmanager
def isolated() -> Iterator[None]:
    """Run a block without side effects: no events, warnings or used random numbers, and with limited memory."""
    state = torch.get_rng_state()
    try:
        with emit.silence(), enable_grad(), warnings.catch_warnings(), limited_memory():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_rng_state(state)


@contextmanager
def _refusing(text: str) -> Iterator[None]:
    try:
        _require_arithmetic(text)
        yield
    except Exception as error:  # the engine's error is the reason
        why = f"{clipped(text, 60)}: {clipped(str(error), 200)}"
        raise GvizError("cannot write a script that reproduces this moment", why=why, exit_code=2) from error


def _require_arithmetic(text: str) -> None:
    """Raise ValueError for Python that does more than name, call and calculate with tensors.

    Arithmetic on plain numbers is refused too: Python's integers grow without limit.
    """
    for part in ast.walk(parsing.program(text)):
        hidden = isinstance(part, ast.Attribute) and part.attr.startswith("_")
        without_tensors = isinstance(part, ast.BinOp) and _is_number(part.left) and _is_number(part.right)
        if hidden or without_tensors or not isinstance(part, _ARITHMETIC):
            raise ValueError(f"{ast.unparse(part)} is not arithmetic on tensors")


def _is_number(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) or (isinstance(part, ast.UnaryOp) and _is_number(part.operand))


# Names of a script's variables


def script_names(infos: Iterable[NodeInfo]) -> dict[int, str]:
    """Return a unique name for each node that has no other meaning in Python or the script."""
    identifiers = {info.node: _identifier(info.name) for info in infos}
    taken = TAKEN.union(dir(builtins))
    names: dict[int, str] = {}
    for node, name in identifiers.items():
        if not name or name in taken:
            name = f"{name or 'v'}_{node}"
            while name in taken or name in identifiers.values():
                name += "_"
        names[node] = name
        taken |= {name}
    return names


def _identifier(name: str) -> str:
    """Return a name of the program as an identifier for the script; empty if that is not possible."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = f"t{plain}" if plain[:1].isdigit() else plain
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else ""


# Memory: the size of a result is known only when it exists

_STATM = Path("/proc/self/statm")
ROOM = 1 << 30
"""Bytes: more than any such script needs, and safe to allocate."""

_lock = RLock()


@contextmanager
def limited_memory(room: int = ROOM) -> Iterator[None]:
    """Raise MemoryError for more than `room` bytes in addition to current use; on Linux only.

    The limit applies to the process: one thread at a time uses it, and the others wait.
    """
    try:
        import resource

        _STATM.stat()
    except (ImportError, OSError):
        yield
        return
    with _lock:
        taken = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = taken + room
        resource.setrlimit(resource.RLIMIT_AS, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
