"""Whether anything overrides what PyTorch does with tensors: gviz's own mode, which does not, is not to count.

Where something does, transformers and attention take another way when they only evaluate, and give other numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import torch
from torch.overrides import has_torch_function as _is_anything
from torch.overrides import has_torch_function_unary as _is_this

from gviz.adapters.pytorch import private
from gviz.adapters.pytorch.regions import without_listening
from gviz.adapters.pytorch.replacing import replace
from gviz.adapters.pytorch.session import Session


def put_in(session: Session, leaving: ExitStack) -> None:
    """Those who look for the question in `torch.overrides` ask it without gviz; PyTorch's functions ask it with."""
    if session.hears_operations and private.can_move_modes:
        replace(torch.overrides, "has_torch_function", has_torch_function, leaving)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """What `torch.overrides.has_torch_function` says without gviz."""
    if torch.compiler.is_compiling():  # Dynamo knows the function by its name there, which is taken
        return any(_is_this(argument) for argument in relevant_args)
    if not _is_anything(relevant_args):
        return False
    with without_listening():
        return bool(_is_anything(relevant_args))
