"""What the engine knows of an error beyond PyTorch's words: which line saved a tensor, wrote to it, freed it.

It is known while somebody records or anomaly mode is on, and said as a note of the exception, so that its text stays
PyTorch's.
"""

from __future__ import annotations

from linecache import getline
from typing import TYPE_CHECKING, Any

from gviz import emit, site
from gviz.engine import anomaly, messages
from gviz.site import Frame

if TYPE_CHECKING:
    from gviz.engine.node import Node
    from gviz.engine.tensor import Tensor


def remember_write(tensor: Tensor) -> None:
    """Note behind the version counter of `tensor`, if anybody may ask, where its memory was written just now."""
    if emit.channel is not None or anomaly.mode.enabled:
        tensor._counter[1:] = [site.stack()]  # type: ignore[list-item]  # what follows the number is for notes alone


def freed(node: Node) -> RuntimeError:
    """The error of asking a node for what it saved after that was freed."""
    error = RuntimeError(messages.SECOND_BACKWARD)
    made, by = _made_at(node), _recorded(node, "freed_at")
    if made:
        error.add_note(f"{node.name()} is of {made}")
    if by:
        error.add_note(f"what it saved was freed by the backward pass of {by}")
    return error


def modified(node: Node, tensor: Tensor, text: str) -> RuntimeError:
    """The error of asking a node for a saved tensor that was written since."""
    error = RuntimeError(text)
    made, written = _made_at(node), tensor._counter[1:]
    if made:
        error.add_note(f"{node.name()} saved it in {made}")
    if written:
        error.add_note(f"it was last written in {_shown(site.frames(written[0]))}")  # type: ignore[arg-type]  # as above
    return error


def _made_at(node: Node) -> str:
    recorded = _recorded(node, "made_at")
    if recorded or node.extras is None:
        return recorded
    stack = node.extras.metadata.get(anomaly.STACK)
    return stack[-1].strip() if stack else ""


def _recorded(node: Node, slot: str) -> str:
    """The line whose number in the recording a node has in `slot`, which is empty where nobody recorded it."""
    try:
        number = object.__getattribute__(node, slot)
    except AttributeError:
        return ""
    channel = None if node.seen is None else node.seen.channel
    return "" if channel is None else _shown(channel.frames(number))


def _shown(frames: tuple[Frame, ...]) -> str:
    """The innermost of the frames as a traceback shows one."""
    if not frames:
        return ""
    frame = frames[0]
    line: Any = getline(frame.path, frame.line).strip()
    where = f'File "{frame.path}", line {frame.line}, in {frame.function}'
    return f"{where}\n    {line}" if line else where
