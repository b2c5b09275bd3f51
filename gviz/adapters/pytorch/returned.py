"""Which part each tensor is of what a call of the program gave, where it gave several."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from gviz import site
from gviz.adapters.pytorch.session import Session
from gviz.adapters.pytorch.tensor_facts import grad_fn_of
from gviz.events import Returned, Step

_FOLDER = torch.__path__[0]
_ON_THE_WAY = tuple(
    f"{_FOLDER}/{part}" for part in ("overrides.py", "_jit_internal.py", "functional.py", "nn/modules/module.py")
)
"""Parts of PyTorch that hand on what the program calls, and give back what that gives."""

_DEEPEST = 4


def say_returned(session: Session, result: object, called: str) -> None:
    """Say of the tensors that a call gave which parts they are, if the program itself called what is `called` so."""
    if not _is_of_the_program(called):
        return
    stack = session.channel.stack()
    for tensor, path in _parts(result, ()):
        mark = session.marks.of(tensor)
        if mark is not None:
            nr = session.marks.output_nr(tensor) if grad_fn_of(tensor) is None else tensor.output_nr
            session.channel.say(Returned(mark.node, nr, stack, path))


def _is_of_the_program(called: str) -> bool:
    """Whether nothing but what hands on a call is between the program and the listener."""
    frame = sys._getframe(2)
    while frame is not None and site.is_hidden(path := frame.f_code.co_filename):
        if path.startswith(_FOLDER) and not path.startswith(_ON_THE_WAY) and frame.f_code.co_name != called:
            return False
        frame = frame.f_back
    return frame is not None


def _parts(result: object, path: tuple[Step, ...]) -> Iterator[tuple[torch.Tensor, tuple[Step, ...]]]:
    """The tensors within tuples, lists and mappings, and the ways to them."""
    if isinstance(result, torch.Tensor):
        if path:
            yield result, path
    elif len(path) < _DEEPEST and isinstance(result, (tuple, list)):
        names = _field_names(result)
        for place, item in enumerate(result):
            step = place, len(result), names[place] if place < len(names) else ""
            yield from _parts(item, (*path, step))
    elif len(path) < _DEEPEST and isinstance(result, Mapping):
        for name, item in result.items():
            if isinstance(name, str):
                yield from _parts(item, (*path, (0, 0, name)))


def _field_names(result: Any) -> tuple[str, ...]:
    """The names by which the items of a tuple can be read: those of a named tuple, or of ``torch.return_types``."""
    kind = type(result)
    return tuple(getattr(kind, "_fields", ()) or (getattr(kind, "__match_args__", ()) if kind is not tuple else ()))
