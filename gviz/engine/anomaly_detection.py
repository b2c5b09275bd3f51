"""Anomaly mode: nodes record where the forward made them, a failing node reports it, and nan is an error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from traceback import StackSummary
from types import FrameType
from typing import Any, Protocol

import numpy as np

from gviz.engine import messages, operation_watchers
from gviz.source.call_stack import is_hidden, warn

__all__ = ["is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled"]

STACK, PARENT = "traceback_", "parent_"
"""Keys of a node's metadata: where the node was made, and the node whose backward step made it."""


@dataclass(slots=True)
class Mode:
    """Whether anomaly mode is on, in all threads, and whether it checks for nan."""

    enabled: bool = False
    check_nan: bool = True


class GraphNode(Protocol):
    """What anomaly mode needs of a `node.Node`, which is built on this module."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Notes about the node, by name."""

    def name(self) -> str:
        """PyTorch's name of the node."""

    def by_argument(self, values: Sequence[Any]) -> Sequence[Any]:
        """The gradients of the arguments that can have one, from the gradients of the slots."""


class _Evaluated(threading.local):
    node: GraphNode | None = None


mode = Mode()
evaluated = _Evaluated()
"""The node whose backward step this thread runs; set in anomaly mode only."""


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return mode.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, when on, checks for nan."""
    return mode.check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switches anomaly mode on or off."""
    operation_watchers.add(bool(enabled) - mode.enabled)
    mode.enabled, mode.check_nan = bool(enabled), bool(check_nan)


def remember(node: GraphNode) -> None:
    """Records in a new node where the program made it, and the node whose backward step made it."""
    node.metadata[STACK] = StackSummary.extract(reversed(list(_user_frames()))).format()
    if evaluated.node is not None:
        node.metadata[PARENT] = evaluated.node


def warn_of(node: GraphNode) -> None:
    """Warns that a node failed: where the forward made it, and the nodes whose steps made those."""
    warn(messages.ANOMALY.format(name=node.name()) + _where(node, messages.ANOMALY_TRACE))
    parent = node.metadata.get(PARENT)
    while parent is not None:
        if STACK in parent.metadata:
            warn(messages.ANOMALY_PARENT.format(name=parent.name()) + "".join(parent.metadata[STACK]))
        else:
            warn(messages.ANOMALY.format(name=parent.name()) + messages.ANOMALY_NO_TRACE)
        parent = parent.metadata.get(PARENT)


def refuse_nan(node: GraphNode, parts: Sequence[Any]) -> None:
    """Raises RuntimeError if an outgoing gradient of a node has a nan."""
    for position, part in enumerate(node.by_argument(parts)):
        if part is not None and np.isnan(getattr(part, "_array", part)).any():
            raise RuntimeError(messages.NAN_GRADIENT.format(name=node.name(), position=position))


def _where(node: GraphNode, before: str) -> str:
    stack = node.metadata.get(STACK)
    return messages.ANOMALY_NO_TRACE if stack is None else before + "".join(stack)


def _user_frames() -> Iterator[tuple[FrameType, int]]:
    """Yield the program's own frames, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_hidden(frame.f_code.co_filename):
            yield frame, frame.f_lineno
        frame = frame.f_back
