"""Function calls such as ``cross_entropy``: the level between the program's modules and the nodes of autograd.

One call of PyTorch's public functions may make many nodes: ``cross_entropy`` makes a ``log_softmax`` and an
``nll_loss``, ``einsum`` makes a dozen views around one ``bmm``. `with_calls` puts a call around the nodes of each
function call, inside the module calls that a `CallGraph` already has. `fold` then makes one box of it. A module that
makes only one call, such as a `Linear`, shares one box with that call, which saves a frame.

Which nodes belong to one call:

* A recording of PyTorch has this information: every node of a call except the last has ``OpSeen.more``.
* The built-in engine and older recordings do not have it. There, nodes that were made in succession at one place of
  the program, in one module call, belong to one call. If they repeat, they belong to the calls of a loop:

      h = F.linear(h, w, b)     t addmm            one call
      for w in ws: h = h @ w.T  t mm  t mm  t mm   three calls

  A body that repeats within one call, such as an `LSTM` over five steps, has a module call of its own.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gviz.events.documented_operation_names import ABBREVIATED, DOCUMENTED
from gviz.explain.display_names import is_mask, public_name, with_mode
from gviz.render.boxes.data_preparation import with_data
from gviz.render.boxes.folding import CALLS, CallGraph, Filter, ModuleCall, around
from gviz.render.boxes.node_states import is_inside_call
from gviz.render.boxes.repeats import with_repeats
from gviz.source import parsing
from gviz.source.call_stack import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.sequence_period import smallest_period
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SourceCall:
    """One call in the program: the function's public name, and its nodes in order of creation."""

    name: str
    nodes: tuple[int, ...]


def has_public_names(timeline: Timeline, infos: Iterable[NodeInfo]) -> bool:
    """Return whether each operation is a call of the program, with its name in PyTorch's documentation.

    A `t` or an `addmm` is no such call: they are parts of a ``linear``.
    """
    operations = {info.node: info for info in infos if info.created.kind == "op" and not info.created.during[0]}
    own_names = {node: info.op.name.lower() for node, info in operations.items()}
    names = {node: ABBREVIATED.get(name, name) for node, name in own_names.items()}
    if any(name in DOCUMENTED or (name.startswith("_") and not name.startswith("__")) for name in names.values()):
        return False
    calls = [*source_calls(timeline, operations.values())]
    if any(len(call.nodes) > 1 and operations[call.nodes[-1]].op.is_of_program for call in calls):
        return False
    return all(call.name.lower() == names[call.nodes[-1]] for call in calls)


def source_calls(timeline: Timeline, infos: Iterable[NodeInfo]) -> Iterator[SourceCall]:
    """Yield the calls that made some operations. The operations come in order of creation, and so do the calls.

    What a custom function (`torch.autograd.Function`) computes in its forward is part of its call.
    """
    operations = {info.node: info for info in infos if info.created.kind == "op"}
    calls: list[SourceCall] = []
    for call in _calls_at_places(timeline, [*operations.values()]):
        function, inner = operations[call.nodes[-1]], len(calls)
        if function.op.is_of_program:
            while inner and all(is_inside_call(operations[node], function) for node in calls[inner - 1].nodes):
                inner -= 1
        nodes = tuple(node for part in calls[inner:] for node in part.nodes)
        calls[inner:] = [replace(call, nodes=(*nodes, *call.nodes))]
    yield from calls


def _calls_at_places(timeline: Timeline, operations: Sequence[NodeInfo]) -> Iterator[SourceCall]:
    """Yield the calls that made some operations, as far as one place in the program makes a call."""
    is_recorded = any(info.op.more or info.op.call for info in operations)
    if len({_place(info) for info in operations}) == 1:  # no recorded stacks, or a program of one line
        is_recorded = True
    run: list[NodeInfo] = []
    for info in operations:
        if run and _place(info) != _place(run[-1]):
            yield from _calls_in(timeline, run, is_recorded=is_recorded)
            run = []
        run.append(info)
    yield from _calls_in(timeline, run, is_recorded=is_recorded)


def _place(info: NodeInfo) -> tuple[Hashable, ...]:
    created = info.created
    return (created.stack, created.scope, created.during) if created.stack else (info.node,)


def _calls_in(timeline: Timeline, run: Sequence[NodeInfo], *, is_recorded: bool) -> Iterator[SourceCall]:
    """Yield the calls that made a run of nodes at one place."""
    if is_recorded:
        begin = 0
        for end, info in enumerate(run, 1):
            if not info.op.more or end == len(run):
                yield SourceCall(public_name(info), tuple(one.node for one in run[begin:end]))
                begin = end
        return
    period = smallest_period([info.op.name for info in run])
    for begin in range(0, len(run), period or 1):
        part = run[begin : begin + period]
        yield SourceCall(_name(timeline, part), tuple(info.node for info in part))


def _name(timeline: Timeline, part: Sequence[NodeInfo]) -> str:
    """Return the name of a call that the recording does not name.

    It is the name of the only node, or else the function in the source, or else the name of the module.
    """
    if len(part) == 1:
        return public_name(part[0])
    if {info.op.base_name for info in part} == {"log_softmax", "nll_loss"}:
        return "cross_entropy"
    frame = part[0].frames[0] if part[0].frames else None
    written = _written(timeline, frame) if frame is not None else ""
    if written:
        return written
    call = timeline.contexts.call(part[0].created.scope)
    if call is not None:
        return _snake(call.kind)
    tracked = [info for info in part if info.created.requires_grad]
    return public_name((tracked or part)[-1])


def _snake(kind: str) -> str:
    """Return ``batch_norm`` for ``BatchNorm2d``, ``cross_entropy`` for ``CrossEntropyLoss``, ``lstm`` for ``LSTM``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"(?<=[a-z])\d+d$", "", kind)).lower()
    return words if words in ("mse_loss", "nll_loss", "huber_loss") else words.removesuffix("_loss")


_OPERATORS = {
    ast.MatMult: "matmul", ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
}  # fmt: skip


def _written(timeline: Timeline, frame: Frame) -> str:
    """Return the function that the program calls at a place: ``gelu`` for ``F.gelu(x)``.

    The name is empty if the program calls an object, which is usually a module.
    """
    text = timeline.source(frame.path)
    if text is None or frame.column < 0 or not 0 < frame.line <= frame.end_line:
        return ""
    return _function_in(text, frame.line, frame.end_line, frame.column, frame.end_column)


@lru_cache(maxsize=4096)
def _function_in(text: str, line: int, end_line: int, column: int, end_column: int) -> str:
    lines = [part.encode() for part in source_lines(text)[line - 1 : end_line]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    try:
        tree = parsing.expression(b"\n".join(lines).decode("utf-8", "replace").strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if isinstance(tree, ast.BinOp):
        return _OPERATORS.get(type(tree.op), "")
    if isinstance(tree, ast.AugAssign):
        return _OPERATORS.get(type(tree.op), "")
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Attribute):
        return ""
    root: ast.expr = tree.func.value
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return "" if isinstance(root, ast.Name) and root.id in ("self", "cls") else tree.func.attr


def with_calls(timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo]) -> CallGraph:
    """Return the graph with the program's function calls around its nodes, as the innermost calls.

    Numbers and masks lie in the call that uses them.
    """
    chains = dict(graph.calls)
    ops = [infos[node] for node in graph.nodes if not (chains.get(node) and chains[node][0].scope < 0)]
    calls = [*source_calls(timeline, ops)]
    outer = {call.nodes[-1]: chains.get(call.nodes[-1], ()) for call in calls}
    own = Counter(chain[-1].scope for chain in outer.values() if chain)
    outer_scopes = {call.scope for chain in {*chains.values()} for call in chain[:-1]}
    units: dict[int, str] = {}
    ordinals: Counter[tuple[str, int, int]] = Counter()
    for call in calls:
        last = call.nodes[-1]
        chain = outer[last]
        if chain and chain[-1].scope not in outer_scopes and own[chain[-1].scope] == 1:
            if not chain[-1].kind.endswith("Loss"):
                units[chain[-1].scope] = with_mode(call.name, *(infos[node] for node in call.nodes))
                continue
            chain = chain[:-1]  # a loss by its name, ``loss = mse_loss``: as important as that of a function
            for node in call.nodes:
                chains[node] = tuple(one for one in chains.get(node, ()) if one.scope != outer[last][-1].scope)
        module, stack, scope = (
            (chain[-1].path, infos[last].created.stack, chain[-1].scope)
            if chain
            else ("", infos[last].created.stack, 0)
        )
        at = ordinals[module, stack, scope]
        ordinals[module, stack, scope] += 1
        path = f"{module}/{stack}/{at}" if chain else f"/{last}"
        source_call = ModuleCall(-CALLS - last, path, call.name)
        for node in call.nodes:
            chains[node] = (*chains.get(node, ()), source_call)
    distinct = {chains[node] for node in graph.nodes if chains.get(node)}
    inner_scopes: dict[int, set[int]] = {}
    for chain in distinct:
        for at, one in enumerate(chain):
            inner_scopes.setdefault(one.scope, set()).add(chain[at + 1].scope if at + 1 < len(chain) else 0)
    wrappers = {scope for scope, inner in inner_scopes.items() if len(inner) == 1 and inner != {0}}
    numbers = {
        info.node
        for info in infos.values()
        if info.created.kind == "constant" and (dict(info.created.attrs).get("number") is True or is_mask(info.created))
        if not any(call.is_data for call in chains.get(info.node, ()))
    }
    return replace(
        graph,
        calls=chains,
        buffers=frozenset(graph.buffers) | numbers,
        owned=frozenset(graph.owned) | numbers,
        units=units,
        wrappers=wrappers,
    )


def with_level(
    timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo], graph_filter: Filter
) -> tuple[CallGraph, Filter]:
    """Return the graph with the data, function calls and repeats that a filter needs, and the filter for it.

    Then `fold` can make the boxes. Data preparation that contains the focus of the filter is expanded.
    """
    if graph_filter.data:
        graph = with_data(timeline, graph, infos, graph_filter.data)
        focused = {call.scope for call in around(graph, graph_filter.focus) if call.is_data}
        graph_filter = replace(graph_filter, opened=graph_filter.opened | focused)
    if graph_filter.calls:
        graph = with_calls(timeline, graph, infos)
    if graph_filter.repeats:
        graph, opened = with_repeats(
            graph, infos, graph_filter.opened, sample=graph_filter.sample, unfolded=graph_filter.unfolded
        )
        graph_filter = replace(graph_filter, opened=graph_filter.opened | opened)
    return graph, graph_filter
