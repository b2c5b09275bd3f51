"""``torch.jit``: traces functions and modules into static graphs, which run without the program.

Read `static_graph` first: the graph as data (`StaticGraph`). `graph_tracer` makes one from the operations of a run, and
`trace` is the function that users call. A `TracedFunction` runs a graph: operation by operation (`tensor_interpreter`),
or on planned buffers (`execution_plan`). `trace_check` compares a graph with the program. The others build on these:

| file | what it does |
|---|---|
| `forward_backward_graph` | a graph that also computes the gradients |
| `cuda_graph_capture` | operations captured on fixed memory, as with a CUDA graph |
| `static_graph_events` | the graph as events of a recording, for drawing |
"""

from __future__ import annotations

from gviz.engine import operation_watchers
from gviz.engine.jit.forward_backward_graph import value_and_grad as value_and_grad
from gviz.engine.jit.notices import TracerWarning as TracerWarning
from gviz.engine.jit.static_graph import Form as Form
from gviz.engine.jit.static_graph import Node as Node
from gviz.engine.jit.static_graph import Ref as Ref
from gviz.engine.jit.static_graph import StaticGraph as StaticGraph
from gviz.engine.jit.static_graph_events import events_of as events_of
from gviz.engine.jit.tensor_interpreter import interpret as interpret
from gviz.engine.jit.tensor_interpreter import run_node as run_node
from gviz.engine.jit.trace import trace as trace
from gviz.engine.jit.trace_check import Difference as Difference
from gviz.engine.jit.trace_check import TracingCheckError as TracingCheckError
from gviz.engine.jit.trace_check import compare as compare
from gviz.engine.jit.traced_function import TracedFunction as TracedFunction
from gviz.engine.jit.traced_function import TracedModule as TracedModule
from gviz.engine.jit.traced_function import load as load
from gviz.engine.jit.traced_function import save as save
from gviz.engine.unsupported_names import lookup_in


def is_tracing() -> bool:
    """Whether the operations of this thread are being recorded."""
    return operation_watchers.is_recording()


__getattr__ = lookup_in(__name__)
