"""Writes a moment of a recording as a script: the leaves as they were, the operations, the passes, the results.

The script runs without the recording. It repeats the recorded arithmetic and reports whether each result agrees with
the recorded one, to half of its digits. A computation that cannot be reproduced is refused: for example a function of
the program, or a hook that changed a gradient.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import gviz.engine as torch
from gviz import events as e
from gviz.engine.op import REQUIRED, Op
from gviz.engine.operation_lookup import attributes_of
from gviz.engine.tensor import Tensor
from gviz.errors import GvizError, NotStored
from gviz.rerun.checked_script import IMPORTS, SAME, CheckedScript, isolated, script_names
from gviz.rerun.node_forward import ENGINE, operation_of
from gviz.source.parsing import SIGNS
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


# ----------------------------------------------------------------------------------------------------------------------
# Writes recorded operations and arrays as PyTorch code.
#
# An operation has several spellings, and the first that gives the recorded result is used. One of them is the function
# that the operation declares as its equivalent; the test suite compares that one with PyTorch.

_PACKAGES = ("", "nn.functional.", "Tensor.", "special.", "linalg.", "fft.")
"""Where a function with an operation's own name may be."""


class _NoLiteral(Exception):
    """An argument that is not a plain value."""


def spellings(op: Op, attrs: Mapping[str, Any], operands: Sequence[str]) -> Iterator[str]:
    """Yield the spellings of an operation on operands with these names, most readable first."""
    changed = {name: value for name, value in attrs.items() if op.attrs[name] is REQUIRED or op.attrs[name] != value}
    try:
        options = {name: _literal(_as_tuple(name, value)) for name, value in changed.items()}
    except _NoLiteral:
        return
    if op.name in SIGNS and len(operands) + len(options) == 2:
        left, right = (*operands, *options.values())
        yield f"{_grouped(left)} {SIGNS[op.name]} {right}"
    if op.drawn:  # no function of its name takes the random numbers it drew
        yield f"{_grouped(operands[0])} * {operands[1]}"
    if op.name == "slice":
        stretch = _slice_text(*(changed[name] for name in ("start", "end", "step")))
        yield f"{_grouped(operands[0])}[{', '.join([*[':'] * changed['dim'], stretch])}]"
    if op.name == "index" and op.slots[1:] == tuple(f"index{at}" for at in range(len(operands) - 1)):
        yield f"{_grouped(operands[0])}[{', '.join(operands[1:])}]"
    for path in dict.fromkeys([op.torch, *(package + op.name for package in _PACKAGES)]):
        if path:
            yield from _calls(path, op, operands, options)


def _calls(path: str, op: Op, operands: Sequence[str], options: Mapping[str, str]) -> Iterator[str]:
    """Yield calls of the function, first with as few keywords as possible, then with all but the first as keywords."""
    keywords = [f"{name}={value}" for name, value in options.items()]
    if op.takes_list:
        yield _call(path, [f"[{', '.join(operands)}]", *keywords])
        return
    yield _call(path, [*operands, *(options.values() if path.startswith("Tensor.") else keywords)])
    by_name = [f"{slot}={operand}" for slot, operand in zip(op.slots[1:], operands[1:], strict=False)]
    yield _call(path, [operands[0], *by_name, *keywords])


def _call(path: str, arguments: Sequence[str]) -> str:
    if path.startswith("Tensor."):
        return f"{_grouped(arguments[0])}.{path.removeprefix('Tensor.')}({', '.join(arguments[1:])})"
    return f"torch.{path}({', '.join(arguments)})"


def _grouped(operand: str) -> str:
    """Return an operand in parentheses if it needs them."""
    is_name, is_positive = operand[0].isalpha() or operand[0] == "_", operand.replace(".", "").isdigit()
    return operand if is_name or is_positive else f"({operand})"


def _as_tuple(name: str, value: Any) -> Any:
    """Return an argument in the form PyTorch expects: a single dimension as a tuple."""
    return (value,) if name == "dims" and isinstance(value, int) else value


def _literal(value: Any) -> str:
    """Return a plain value as Python source."""
    if isinstance(value, list):
        return f"[{', '.join(_literal(one) for one in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_literal(one) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.dtype | torch.dtype):
        return f"torch.{str(value).removeprefix('torch.')}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise _NoLiteral


def _slice_text(start: int, end: int, step: int) -> str:
    """Return a slice as it is usually written."""
    return f"{start or ''}:{'' if end >= sys.maxsize else end}{'' if step == 1 else f':{step}'}"


# Arrays, with the digits that distinguish each number from all others of its dtype

MOST_ELEMENTS = 20_000
"""The most numbers that a script contains."""


class Literals:
    """The recorded numbers in a script; `of_what` names a value in the errors."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._elements = 0

    def tensor(self, value: Value | None, of_what: str, *, requires_grad: bool = False) -> str:
        """Return the call that creates a tensor with this value; an empty one keeps its shape."""
        array, dtype = self._counted(value, of_what)
        more = "" if dtype in ("float32", "int64", "bool") and array.size else f", dtype=torch.{dtype}"
        more += ", requires_grad=True" if requires_grad else ""
        if not array.size:
            return f"torch.empty({array.shape}{more})"
        text = f"torch.tensor({_array_literal(array)}{more})"
        return text if len(text) < 100 else "\n    ".join(textwrap.wrap(text, 110, break_long_words=False))

    def number(self, value: Value | None, of_what: str) -> str:
        """Return the single number of a value."""
        return _array_literal(self._counted(value, of_what)[0])

    def is_one(self, value: Value | None, of_what: str) -> bool:
        """Return whether a value is the number 1, the default seed of a backward pass."""
        array, _ = self._stored(value, of_what)
        return not array.ndim and bool(array == 1)

    def _counted(self, value: Value | None, of_what: str) -> tuple[Array, str]:
        array, dtype = self._stored(value, of_what)
        self._elements += array.size
        if self._elements > MOST_ELEMENTS:
            raise GvizError(f"the script would hold more than {MOST_ELEMENTS:,} numbers", exit_code=2)
        return array, dtype

    def _stored(self, value: Value | None, of_what: str) -> tuple[Array, str]:
        """Return the elements of a value and its dtype, which numpy may lack."""
        array = None if value is None else self._timeline.array(value)
        if value is None or array is None:
            raise NotStored(f"the value of {of_what}")
        if array.dtype.kind == "c":
            raise GvizError(f"no script is written of complex numbers, as {of_what} holds them", exit_code=2)
        return array, value.dtype


def _array_literal(array: Array) -> str:
    return f"[{', '.join(_array_literal(part) for part in array)}]" if array.ndim else str(array[()])
