"""PyTorch's own function where a program has put another in its place, as profilers do that count calls.

PyTorch asks a mode by the name of what was called, and so with what the program has put there, although that is what is
running already: it would run twice.
"""

from __future__ import annotations

import gc
from types import BuiltinFunctionType, FrameType, FunctionType, MethodDescriptorType, MethodWrapperType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.overrides import handle_torch_function

_FOLDER = torch.__path__[0]
_ASKS = handle_torch_function.__code__
_WRITTEN_IN_C = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, type(object.__init__))
_C_METHODS = torch.Tensor.__base__
_replaced: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""By what a program has put in their place, the functions that are called; what it lets go of goes."""


def original_of(function: Any, caller: FrameType) -> Any:
    """What was called, if a mode is asked about `function` by the frame `caller`; mostly that function itself."""
    if isinstance(function, _WRITTEN_IN_C) or _is_of_pytorch(getattr(function, "__code__", None)):
        return function
    try:
        original = _replaced.get(function)
    except TypeError:  # it cannot be hashed, or referred to weakly
        return _look_for_original(function, caller)
    if original is None:
        original = _look_for_original(function, caller)
        if original is not function:
            _replaced[function] = original
    return original


def _look_for_original(function: Any, caller: FrameType) -> Any:
    if caller.f_code is not _ASKS:
        return _method_in_place_of(function)
    asker = caller.f_back.f_code if caller.f_back is not None else None
    return _function_with(asker, function) if _is_of_pytorch(asker) else function


def _is_of_pytorch(code: Any) -> bool:
    return getattr(code, "co_filename", "").startswith(_FOLDER)


def _method_in_place_of(function: Any) -> Any:
    """A method that is written in C; it has no frame, and is looked for by the name that it has lost."""
    names = [name for name, value in vars(torch.Tensor).items() if value is function]
    return next((getattr(_C_METHODS, name) for name in names if hasattr(_C_METHODS, name)), function)


def _function_with(code: Any, otherwise: Any) -> Any:
    """A function that runs in a frame, of which only the code is known."""
    referring = gc.get_referrers(code)
    return next((it for it in referring if isinstance(it, FunctionType) and it.__code__ is code), otherwise)
