"""Writes a moment of a recording as a script: the leaves as they were, the operations, the passes, the results.

The script runs without the recording. It repeats the recorded arithmetic and reports whether each result agrees with
the recorded one, to half of its digits. A computation that cannot be reproduced is refused: for example a function of
the program, or a hook that changed a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gviz import events as e
from gviz.engine.operation_lookup import attributes_of
from gviz.engine.tensor import Tensor
from gviz.errors import GvizError
from gviz.rerun.checked_script import IMPORTS, SAME, CheckedScript, isolated, script_names
from gviz.rerun.node_forward import ENGINE, operation_of
from gviz.rerun.pytorch_text import Literals, spellings
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, file_line
from gviz.values.value import Array, Value

_TITLE = "What a recorded program computed for {}, again: written by gviz, for PyTorch or gviz."


def script(timeline: Timeline, n: int, node: int) -> str:
    """Return a script of how a node was computed, and of the passes through it up to moment `n`.

    Raises GvizError if that cannot be written with the same results.
    """
    passes = _passes(timeline, n, node)
    roots = [root for one in passes for root, _ in one.event.roots]
    infos = _with_sources(timeline, [node, *roots])
    if not _is_run(timeline.info(node)) and not any(one.end for one in passes):
        raise _refusal(timeline.info(node), "nothing was computed for it up to here: its number is all there is")
    first = min((info.born for info in infos if _is_run(info)), default=n + 1)
    last = max([one.end or n for one in passes] + [infos[-1].born])
    _refuse_writes(timeline, infos, first, last)
    draft = _Draft(timeline, script_names(infos), Literals(timeline))
    with isolated():
        for info in infos:
            _add_operation(draft, info) if _is_run(info) else _add_leaf(draft, info, max(first - 1, info.born))
        for one in passes:
            _add_pass(draft, one, [info for info in infos if not _is_run(info)])
        _add_comparison(draft, timeline.info(node), passes)
    title = f'"""{_TITLE.format(draft.names[node])}"""'
    return "\n".join([title, "", IMPORTS, "", SAME, "", *draft.tried.lines, "raise SystemExit(not all(results))", ""])


def _with_sources(timeline: Timeline, nodes: Iterable[int]) -> list[NodeInfo]:
    """Return the nodes and all their sources, in order of creation."""
    infos: dict[int, NodeInfo] = {}
    todo = [*nodes]
    while todo:
        if (node := todo.pop()) not in infos:
            info = infos[node] = timeline.info(node)
            todo += [source for source, _ in info.created.inputs if source] if _is_run(info) else []
    return sorted(infos.values(), key=lambda info: (info.born, info.node))


def _passes(timeline: Timeline, n: int, node: int) -> list[_Pass]:
    """Return the passes in the moment's iteration that had started by then from something computed from the node."""
    iteration, passes = timeline.iteration_at(n), []
    kinds = (e.BackwardStarted, e.BackwardFinished)
    events_in = list(timeline.select(kinds, iteration.start, iteration.end + 1))
    ends = {event.pass_nr: seq for seq, event in events_in if isinstance(event, e.BackwardFinished)}
    for seq, event in events_in:
        if isinstance(event, e.BackwardStarted) and seq <= n:
            reached = _with_sources(timeline, [root for root, _ in event.roots])
            if node in {info.node for info in reached}:
                passes.append(_Pass(seq, event, ends.get(event.pass_nr, 0)))
    return passes


def _refuse_writes(timeline: Timeline, infos: Sequence[NodeInfo], first: int, last: int) -> None:
    """Raise GvizError for writes, new data and hooks of the program at these nodes."""
    storages = {output.storage: info for info in infos for output in info.created.outputs}
    nodes = {info.node for info in infos}
    for seq, event in timeline.select((e.StorageWritten, e.DataSet, e.HookRan), first, last + 1):
        if isinstance(event, e.StorageWritten) and event.storage in storages:
            raise _refusal(storages[event.storage], f"it was written in place at event {seq}")
        if isinstance(event, e.DataSet) and event.node in nodes:
            raise _refusal(timeline.info(event.node), f"it was given other data at event {seq}")
        if isinstance(event, e.HookRan) and event.node in nodes and event.value is not None:
            raise _refusal(timeline.info(event.node), f"a hook changed its gradient at event {seq}")


# Statements, each run as it is written


class _Pass(NamedTuple):
    """A backward pass: its first event, and its last, 0 if it has not ended."""

    n: int
    event: e.BackwardStarted
    end: int


@dataclass(slots=True)
class _Draft:
    """A script under construction: the names of its nodes, and the expressions for their results."""

    timeline: Timeline
    names: dict[int, str]
    literals: Literals
    tried: CheckedScript = field(default_factory=CheckedScript)
    results: dict[int, list[str]] = field(default_factory=dict)

    @property
    def exactly(self) -> bool:
        """Whether it must reproduce the exact bits: it runs in the engine that recorded them."""
        return self.timeline.framework == ENGINE

    def note_results(self, info: NodeInfo) -> None:
        """Record that a node's statement has been run."""
        name = self.names[info.node]
        result = self.tried[name]
        several = isinstance(result, tuple | list)
        self.results[info.node] = [f"{name}[{nr}]" for nr in range(len(result))] if several else [name]


def _add_leaf(draft: _Draft, info: NodeInfo, n: int) -> None:
    """Add a leaf, a constant, or an untracked tensor, as it was at moment `n`."""
    values = [draft.timeline.memory_value(info.node, nr, n) for nr in range(len(info.created.outputs))]
    if dict(info.created.attrs).get("number"):
        draft.results[info.node] = [draft.literals.number(values[0], _called(info))]
        return
    grad = _has_gradient(info)
    written = [draft.literals.tensor(value, _called(info), requires_grad=grad) for value in values]
    text = written[0] if len(written) == 1 else f"({', '.join(written)})"
    draft.tried.assign(draft.names[info.node], text, _place(info))
    draft.note_results(info)


def _add_operation(draft: _Draft, info: NodeInfo) -> None:
    """Add an operation, in the first spelling that gives the recorded result."""
    _require_recorded_operands(info)
    if info.created.during[0]:
        raise _refusal(info, "a backward pass made it")
    operation = operation_of(draft.timeline, info)
    if operation is None:
        raise _refusal(info, f"{info.op.name} is no operation of the built-in engine that runs on its own")
    op, created = operation
    if any(nr >= len(draft.results[node]) for node, nr in created.inputs):
        raise _refusal(info, "it uses a result that PyTorch does not return")
    operands = [draft.results[node][nr] for node, nr in created.inputs]
    recorded = [None if one.value is None else draft.timeline.array(one.value) for one in created.outputs]
    for text in spellings(op, attributes_of(op, created.attrs), operands):
        result = draft.tried.result_or_none(text)
        if result is not None and _agrees(result, recorded, exactly=draft.exactly):
            draft.tried.bind(draft.names[info.node], text, result, _place(info))
            draft.note_results(info)
            return
    raise _refusal(info, f"there is no line of PyTorch for {info.op.name} that gives what was recorded")


def _add_pass(draft: _Draft, one: _Pass, leaves: Iterable[NodeInfo]) -> None:
    """Add a pass, starting from the gradients at that time."""
    event = one.event
    if event.inputs or len(event.roots) != 1:
        info = draft.timeline.info(event.roots[0][0])
        raise _refusal(info, "a pass was asked for some gradients, or began twice")
    draft.tried.lines.append("")
    for info in leaves:
        _set_gradient(draft, info, one.n)
    (root, nr), (seed,), of_what = event.roots[0], event.seeds, "a seed"
    arguments = [] if draft.literals.is_one(seed, of_what) else [draft.literals.tensor(seed, of_what)]
    arguments += ["create_graph=True"] if event.create_graph else ["retain_graph=True"] if event.retain_graph else []
    draft.tried.do(f"{draft.results[root][nr]}.backward({', '.join(arguments)})")


def _add_comparison(draft: _Draft, info: NodeInfo, passes: Sequence[_Pass]) -> None:
    """Compare a node's results, and the gradients after the last pass, with the recorded ones."""
    results = draft.results[info.node] if _is_run(info) else ()
    recorded = [(name, info, out.value) for name, out in zip(results, info.created.outputs, strict=False)]
    if passes and passes[-1].end:
        leaves = [*map(draft.timeline.info, draft.results)]
        grads = [(leaf, _gradient(draft.timeline, leaf, passes[-1].end)) for leaf in leaves]
        recorded += [(f"{draft.names[leaf.node]}.grad", leaf, grad) for leaf, grad in grads if grad is not None]
    lines = [
        f'    same("{name}", {name}, {draft.literals.tensor(value, _called(of))}),' for name, of, value in recorded
    ]
    draft.tried.lines.append("")
    draft.tried.do("\n".join(["results = [", *lines, "]"]))
    for line, fits in zip(draft.tried.output, draft.tried["results"], strict=True):
        rounded = draft.exactly and not line.endswith(" is as recorded")  # the engine itself rounds a 0 the same way
        if not fits or rounded:
            raise _refusal(info, f"run again, {clipped(line, 200)}")


def _is_run(info: NodeInfo) -> bool:
    """Return whether the script computes this node again. Others (leaves, untracked results) are written as
    literals.
    """
    return info.created.kind == "op" and info.created.requires_grad and not info.created.untracked


def _refusal(info: NodeInfo, why: str) -> GvizError:
    """Return the error for a node that cannot be reproduced."""
    return GvizError(f"no script gives {_called(info)} again", why=why, exit_code=2)


def _require_recorded_operands(info: NodeInfo) -> None:
    """Raise GvizError for an operand that was not recorded."""
    for nr, (source, _) in enumerate(info.created.inputs):
        if not source:
            which = info.op.slots[nr] if nr < len(info.op.slots) else nr
            why = f"its operand {which} was not recorded: it was made inside of an operation, or is a number"
            raise _refusal(info, why)


def _set_gradient(draft: _Draft, leaf: NodeInfo, n: int) -> None:
    """Set the gradient that a leaf had at that moment."""
    grad, name = _gradient(draft.timeline, leaf, n), draft.names[leaf.node]
    if grad is not None:
        draft.tried.do(f"{name}.grad = {draft.literals.tensor(grad, _called(leaf))}")
    elif leaf.created.requires_grad and draft.tried[name].grad is not None:
        draft.tried.do(f"{name}.grad = None")


def _gradient(timeline: Timeline, leaf: NodeInfo, n: int) -> Value | None:
    """Return the ``.grad`` of a leaf at a moment."""
    state = timeline.at(n).state(leaf.node)
    return state.outputs[0].grad if state is not None and _has_gradient(leaf) else None


def _has_gradient(info: NodeInfo) -> bool:
    return info.created.kind != "op" and info.created.requires_grad


def _called(info: NodeInfo) -> str:
    return f"#{info.node} {clipped(info.title, 40)}"


def _place(info: NodeInfo) -> str:
    return file_line(info.frames[0].path, info.frames[0].line) if info.frames else ""


# Whether a result is the recorded one


def _agrees(result: Any, recorded: Sequence[Array | None], *, exactly: bool) -> bool:
    """Return whether the value of an expression is the recorded one; a function may return fewer outputs."""
    tensors = result if isinstance(result, tuple | list) else [result]
    if len(tensors) > len(recorded) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        return False
    pairs = [(tensor.detach().numpy(), array) for tensor, array in zip(tensors, recorded, strict=False)]
    return all(array is not None and _is_same(mine, array, exactly=exactly) for mine, array in pairs)


def _is_same(mine: Array, recorded: Array, *, exactly: bool) -> bool:
    """Return whether two arrays are equal or, unless `exactly`, agree in half of the digits of the largest element."""
    if mine.shape != recorded.shape or mine.dtype != recorded.dtype:
        return False
    if exactly or mine.dtype.kind != "f":
        return np.array_equal(mine, recorded, equal_nan=mine.dtype.kind == "f")
    part = float(np.finfo(recorded.dtype).eps) ** 0.5
    largest = float(np.abs(recorded).max(initial=0.0, where=np.isfinite(recorded)))
    return bool(np.allclose(mine, recorded, rtol=part, atol=part * largest / 10, equal_nan=True))
