"""Anomaly mode: nodes remember where the forward made them, a failing node says so, and nan is a failure."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from traceback import StackSummary
from types import FrameType
from typing import Any, Protocol

import numpy as np

from gviz.engine import messages, watchers
from gviz.source.site import is_hidden, warn

__all__ = ["is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled"]

STACK, PARENT = "traceback_", "parent_"
"""Under which names a node's metadata has where it was made, and the node whose step made it."""


@dataclass(slots=True)
class Mode:
    """Whether anomaly mode is on, in all threads, and whether it looks for nan."""

    enabled: bool = False
    check_nan: bool = True


class GraphNode(Protocol):
    """What anomaly mode uses of a `node.Node`, which is built on this module."""

    @property
    def metadata(self) -> dict[str, Any]:
        """Notes about the node, by name."""

    def name(self) -> str:
        """PyTorch's name of the node."""

    def places(self, of_slots: Sequence[Any]) -> Sequence[Any]:
        """The gradients of the arguments that can have one, given the gradients of the slots."""


class _Evaluated(threading.local):
    node: GraphNode | None = None


mode = Mode()
evaluated = _Evaluated()
"""The node whose step this thread runs, known only in anomaly mode."""


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return mode.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, while it is on, looks for nan."""
    return mode.check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off."""
    watchers.add(bool(enabled) - mode.enabled)
    mode.enabled, mode.check_nan = bool(enabled), bool(check_nan)


def remember(node: GraphNode) -> None:
    """Note in a new node where the program made it, and during which node's step."""
    node.metadata[STACK] = StackSummary.extract(reversed(list(_user_frames()))).format()
    if evaluated.node is not None:
        node.metadata[PARENT] = evaluated.node


def warn_of(node: GraphNode) -> None:
    """Warn that a node failed: where the forward made it, and what induced that."""
    warn(messages.ANOMALY.format(name=node.name()) + _where(node, messages.ANOMALY_TRACE))
    parent = node.metadata.get(PARENT)
    while parent is not None:
        if STACK in parent.metadata:
            warn(messages.ANOMALY_PARENT.format(name=parent.name()) + "".join(parent.metadata[STACK]))
        else:
            warn(messages.ANOMALY.format(name=parent.name()) + messages.ANOMALY_NO_TRACE)
        parent = parent.metadata.get(PARENT)


def refuse_nan(node: GraphNode, parts: Sequence[Any]) -> None:
    """RuntimeError if a gradient that a node gave has a nan."""
    for position, part in enumerate(node.places(parts)):
        if part is not None and np.isnan(getattr(part, "_array", part)).any():
            raise RuntimeError(messages.NAN_GRADIENT.format(name=node.name(), position=position))


def _where(node: GraphNode, before: str) -> str:
    stack = node.metadata.get(STACK)
    return messages.ANOMALY_NO_TRACE if stack is None else before + "".join(stack)


def _user_frames() -> Iterator[tuple[FrameType, int]]:
    """The frames of the program itself, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_hidden(frame.f_code.co_filename):
            yield frame, frame.f_lineno
        frame = frame.f_back
