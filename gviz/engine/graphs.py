"""Capture and replay, as with CUDA graphs: operations on fixed buffers, run again without the program.

x = torch.zeros(3)                     # allocated before
g = graphs.Graph()
with graphs.capture(g):
    y = w @ x
x.copy_(data)
g.replay()                             # y has changed in place
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gviz.engine import operation_watchers
from gviz.engine.jit.cuda_graph_capture import CapturedSteps, CaptureRecorder
from gviz.engine.jit.static_graph import StaticGraph
from gviz.engine.jit.tensor_interpreter import scope

__all__ = ["Graph", "capture"]

_NOTHING = "Called CUDAGraph::{what} without a preceding successful capture."
_OWNS = "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."


class Graph:
    """A captured graph, empty until a capture."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._captured: CapturedSteps | None = None
        self._graph: StaticGraph | None = None
        self._capturing: Any = None

    def replay(self) -> None:
        """Runs the captured operations again, on the same memory. Raises RuntimeError if nothing was captured."""
        if self._captured is None:
            raise RuntimeError(_NOTHING.format(what="replay"))
        self._captured.replay()

    def reset(self) -> None:
        """Forgets the capture. Its memory stays valid for tensors that use it."""
        self._captured = self._graph = None

    @property
    def graph(self) -> StaticGraph:
        """The captured operations as data; the tensors that they start from are its parameters and constants."""
        if self._graph is None:
            raise RuntimeError(_NOTHING.format(what="graph"))
        return self._graph

    def capture_begin(self, *_: Any, **__: Any) -> None:
        """Starts a capture, until `capture_end`."""
        self._capturing = capture(self)
        self._capturing.__enter__()

    def capture_end(self) -> None:
        """Ends the capture that `capture_begin` started."""
        if self._capturing is None:
            raise RuntimeError("capture_end() without capture_begin()")
        capturing, self._capturing = self._capturing, None
        capturing.__exit__(None, None, None)

    def __repr__(self) -> str:
        steps = "nothing" if self._graph is None else f"{len(list(self._graph.operations()))} operations"
        return f"<captured graph of {steps}>"


@contextmanager
def capture(graph: Graph, *_: Any, **__: Any) -> Iterator[Graph]:
    """Captures the operations within the block. They also run once, so that their results exist.

    Raises RuntimeError, with the reason, for what a replay cannot repeat: reading a value, sizes that depend on data,
    random numbers, custom Functions, giving a tensor other memory.
    """
    if graph._captured is not None:
        raise RuntimeError(_OWNS)
    if operation_watchers.is_recording():
        raise RuntimeError("a capture within a capture or a trace: this one would not be seen by the other")
    recorder = CaptureRecorder()
    with operation_watchers.recording(recorder), scope("capture", "captured graph"):
        yield graph
    graph._captured = CapturedSteps(recorder.settled())
    graph._graph = StaticGraph("captured", tuple(recorder.nodes), ())
