"""Tells listeners which part each tensor is of what a function or a module gave, where it gave several."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gviz import emit
from gviz.emit import Channel, Seen
from gviz.engine import announce
from gviz.engine.tensor import Tensor
from gviz.events import Returned
from gviz.returned import parts
from gviz.site import called_by_the_program, forwards

F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = str(Path(__file__).parent) + "/"


def telling_parts(function: F) -> F:
    """`function`, which tells listeners of the parts of what it gives; itself if that is always a tensor."""
    signature = getattr(function, "__signature__", None)
    given = function.__annotations__.get("return") if signature is None else signature.return_annotation
    if given in ("Tensor", "None", "bool", "int", "float", "str", inspect.Signature.empty):
        return function

    @forwards
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if emit.channel is not None:
            say_returned(emit.channel, result)
        return result

    return wrapper  # type: ignore[return-value]  # the same signature


@forwards
def say_returned(channel: Channel, result: object) -> None:
    """Say which parts of a call's result the tensors in it are, if it was the program that called."""
    if not isinstance(result, Tensor) and called_by_the_program(_FOLDER):
        _say_parts(channel, result, announce.seen)


@forwards
def say_gradients(channel: Channel, result: object) -> None:
    """The same of what `autograd.grad` gave, which is announced now."""
    if called_by_the_program(_FOLDER):
        _say_parts(channel, result, announce.captured)


def _say_parts(channel: Channel, result: object, announced: Callable[[Channel, Tensor], Seen]) -> None:
    stack = channel.stack()
    for tensor, path in parts(result, Tensor):
        channel.say(Returned(announced(channel, tensor).node, tensor._output_nr, stack, path))
