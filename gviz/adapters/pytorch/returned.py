"""Which part each tensor is of what a call of the program gave, where it gave several."""

from __future__ import annotations

import sys

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
_PACKING = dict.fromkeys(
    ("_pack_padded_sequence", "_pad_packed_sequence"), (*_HANDING_ON, f"{_FOLDER}/nn/utils/rnn.py")
)
"""What the functions for sequences of several lengths hand on."""

_PADDING = "_pad_packed_sequence"
"""What ``pad_packed_sequence`` goes on with where the sequences were sorted for packing."""


def _is_put_in_order_yet() -> bool:
    """Whether rows will be put back into the order in which the program has given them."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name != _PADDING[1:]:
        frame = frame.f_back
    return getattr(frame.f_locals.get("sequence"), "unsorted_indices", None) is not None


def say_returned(session: Session, result: object, called: str = "") -> None:
    """Say of the tensors that a call gave which parts they are, if the program itself called what is `called` so."""
    handing_on = _PACKING.get(called, _HANDING_ON)
    if not called_by_the_program(_FOLDER, handing_on, called) or (called == _PADDING and _is_put_in_order_yet()):
        return
    stack = session.channel.stack()
    for tensor, path in parts(result, torch.Tensor):
        mark = session.marks.of(tensor)
        if mark is not None:
            nr = session.marks.output_nr(tensor) if grad_fn_of(tensor) is None else tensor.output_nr
            session.channel.say(Returned(mark.node, nr, stack, path))
