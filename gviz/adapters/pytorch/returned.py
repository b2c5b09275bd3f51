"""Which part each tensor is of what a call of the program gave, where it gave several."""

from __future__ import annotations

import torch

from gviz.adapters.pytorch.session import Session
from gviz.adapters.pytorch.tensor_facts import grad_fn_of
from gviz.events import Returned
from gviz.returned import parts
from gviz.site import called_by_the_program

_FOLDER = torch.__path__[0]
_HANDING_ON = tuple(
    f"{_FOLDER}/{part}"
    for part in ("overrides.py", "_jit_internal.py", "_tensor.py", "functional.py", "nn/modules/module.py")
)


def say_returned(session: Session, result: object, called: str = "") -> None:
    """Say of the tensors that a call gave which parts they are, if the program itself called what is `called` so."""
    if not called_by_the_program(_FOLDER, _HANDING_ON, called):
        return
    stack = session.channel.stack()
    for tensor, path in parts(result, torch.Tensor):
        mark = session.marks.of(tensor)
        if mark is not None:
            nr = session.marks.output_nr(tensor) if grad_fn_of(tensor) is None else tensor.output_nr
            session.channel.say(Returned(mark.node, nr, stack, path))
