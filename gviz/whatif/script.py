"""A moment of a recording as a script of its own: the leaves as they were, the operations, the passes, what they gave.

Run alone it does the arithmetic of the recording again and says whether each number is the recorded one. What cannot be
said so, a function of the program's or a hook that changed a gradient, is refused: no script is almost true.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gviz import events as e
from gviz.engine.identify import VIEW, attributes_of, recorded_operation
from gviz.engine.op import Op
from gviz.engine.tensor import Tensor
from gviz.errors import GvizError
from gviz.plain_text import clipped, file_line
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value
from gviz.whatif import operations
from gviz.whatif.foreign import in_engine_terms
from gviz.whatif.functions import ENGINE
from gviz.whatif.literals import literal, number
from gviz.whatif.tried import IMPORTS, SAME, TAKEN, Tried, trying
from gviz.whatif.wording import wordings

MOST_ELEMENTS = 20_000
"""So many numbers a script holds at most."""

_TITLE = "What a recorded program computed for {}, again: written by gviz, for PyTorch or gviz alone."


@dataclass(frozen=True, slots=True)
class _Pass:
    """A backward pass and its last event, 0 if it is not over."""

    n: int
    event: e.BackwardStarted
    end: int


def script(timeline: Timeline, n: int, node: int) -> str:
    """What made a node, and the passes that went through it up to moment `n`, as a script.

    GvizError where that cannot be written so that it gives the same.
    """
    passes = _passes(timeline, n, node)
    roots = [root for one in passes for root, _ in one.event.roots]
    infos = _made_from(timeline, [node, *roots])
    if not _is_run(timeline.info(node)) and not any(one.end for one in passes):
        raise _refusal(timeline.info(node), "nothing was computed for it up to here: its number is all there is")
    first = min((info.born for info in infos if _is_run(info)), default=n + 1)
    last = max([one.end or n for one in passes] + [infos[-1].born])
    _refuse_writes(timeline, infos, first, last)
    writing = _Writing(timeline, first - 1, _names(infos))
    with trying():
        for info in infos:
            writing.run(info) if _is_run(info) else writing.enter(info)
        for one in passes:
            writing.backward(one, [info for info in infos if not _is_run(info)])
        writing.compare(node, passes)
    title = f'"""{_TITLE.format(writing.names[node])}"""'
    return "\n".join([title, "", IMPORTS, "", SAME, "", *writing.tried.lines, "raise SystemExit(not all(results))", ""])


def _names(infos: Iterable[NodeInfo]) -> dict[int, str]:
    """What each node is called: as in the program, where that is a name that nothing else of the script has."""
    wanted = {info.node: _identifier(info.name) for info in infos}
    taken = TAKEN.union(dir(builtins))
    names: dict[int, str] = {}
    for node, name in wanted.items():
        if not name or name in taken:
            name = f"{name or 'v'}_{node}"
            while name in taken or name in wanted.values():
                name += "_"
        names[node] = name
        taken |= {name}
    return names


def _identifier(name: str) -> str:
    """A name of a program as one of the script, empty if it is none."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = f"t{plain}" if plain[:1].isdigit() else plain
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else ""


def _is_run(info: NodeInfo) -> bool:
    """Whether it is an operation that matters to a gradient; all else is taken as the number it was."""
    return info.created.kind == "op" and info.created.requires_grad and not info.created.untracked


def _made_from(timeline: Timeline, nodes: Iterable[int]) -> list[NodeInfo]:
    """The nodes and all that they were made from, in the order in which they were made."""
    found: dict[int, NodeInfo] = {}
    todo = [*nodes]
    while todo:
        if (node := todo.pop()) not in found:
            info = found[node] = timeline.info(node)
            todo += [source for source, _ in info.created.inputs if source] if _is_run(info) else []
    return sorted(found.values(), key=lambda info: (info.born, info.node))


def _require_recorded_operands(info: NodeInfo) -> None:
    """Raise GvizError for an operand of which the recording says nothing."""
    for nr, (source, _) in enumerate(info.created.inputs):
        if not source:
            which = info.op.slots[nr] if nr < len(info.op.slots) else nr
            why = f"its operand {which} was not recorded: it was made inside of an operation, or is a number"
            raise _refusal(info, why)


def _passes(timeline: Timeline, n: int, node: int) -> list[_Pass]:
    """The passes of the moment's iteration that began by then at something made from the node."""
    iteration, found = timeline.iteration_at(n), []
    kinds = (e.BackwardStarted, e.BackwardFinished)
    said = list(timeline.select(kinds, iteration.start, iteration.end + 1))
    ends = {event.pass_nr: seq for seq, event in said if isinstance(event, e.BackwardFinished)}
    for seq, event in said:
        if isinstance(event, e.BackwardStarted) and seq <= n:
            reached = _made_from(timeline, [root for root, _ in event.roots])
            if node in {info.node for info in reached}:
                found.append(_Pass(seq, event, ends.get(event.pass_nr, 0)))
    return found


def _refuse_writes(timeline: Timeline, infos: Sequence[NodeInfo], first: int, last: int) -> None:
    """Raise GvizError for what the program did to these nodes besides operations and passes."""
    storages = {output.storage: info for info in infos for output in info.created.outputs}
    nodes = {info.node for info in infos}
    for seq, event in timeline.select((e.StorageWritten, e.HookRan), first, last + 1):
        if isinstance(event, e.StorageWritten) and event.storage in storages:
            raise _refusal(storages[event.storage], f"it was written in place at event {seq}")
        if isinstance(event, e.HookRan) and event.node in nodes and event.value is not None:
            raise _refusal(timeline.info(event.node), f"a hook changed its gradient at event {seq}")


def _refusal(info: NodeInfo, why: str) -> GvizError:
    return GvizError(f"no script gives #{info.node} {clipped(info.title, 40)} again", why=why, exit_code=2)


@dataclass(slots=True)
class _Writing:
    """A script in progress; leaves are as they were at moment `start`."""

    timeline: Timeline
    start: int
    names: dict[int, str]
    tried: Tried = field(default_factory=Tried)
    _refs: dict[int, list[str]] = field(default_factory=dict)
    _elements: int = 0

    def enter(self, info: NodeInfo) -> None:
        """A leaf, a constant, or what autograd did not follow."""
        at = max(self.start, info.born)
        values = [self.timeline.held(info.node, nr, at) for nr in range(len(info.created.outputs))]
        if dict(info.created.attrs).get("number"):
            self._refs[info.node] = [number(self._array(info, values[0]))]
            return
        grad = info.created.kind != "op" and info.created.requires_grad
        written = [self._literal(info, value, requires_grad=grad) for value in values]
        text = written[0] if len(written) == 1 else f"({', '.join(written)})"
        self.tried.assign(self.names[info.node], text, _place(info))
        self._refer(info)

    def run(self, info: NodeInfo) -> None:
        """An operation."""
        _require_recorded_operands(info)
        op, created = self._operation(info)
        if any(nr >= len(self._refs[node]) for node, nr in created.inputs):
            raise _refusal(info, "it uses a result that PyTorch gives to nobody")
        operands = [self._refs[node][nr] for node, nr in created.inputs]
        recorded = [None if one.value is None else self.timeline.array(one.value) for one in created.outputs]
        for text in wordings(op, attributes_of(op, created.attrs), operands):
            made = self.tried.result_or_none(text)
            if made is not None and _gives(made, recorded, exactly=self.timeline.framework == ENGINE):
                self.tried.bind(self.names[info.node], text, made, _place(info))
                self._refer(info)
                return
        raise _refusal(info, f"there is no line of PyTorch for {info.op.name} that gives what was recorded")

    def backward(self, one: _Pass, leaves: Iterable[NodeInfo]) -> None:
        """A pass, from the gradients that there were."""
        event = one.event
        if event.inputs or len(event.roots) != 1:
            raise _refusal(self.timeline.info(event.roots[0][0]), "a pass was asked for some gradients, or began twice")
        self.tried.lines.append("")
        for info in leaves:
            self._set_gradient(info, one.n)
        given = [] if self._is_one(event.seeds[0]) else [self._literal(None, event.seeds[0])]
        given += ["create_graph=True"] if event.create_graph else ["retain_graph=True"] if event.retain_graph else []
        root, nr = event.roots[0]
        self.tried.do(f"{self._refs[root][nr]}.backward({', '.join(given)})")

    def compare(self, node: int, passes: Sequence[_Pass]) -> None:
        """Hold the numbers against the recorded ones."""
        info, pairs = self.timeline.info(node), []
        for ref, output in zip(self._refs[node], info.created.outputs, strict=False) if _is_run(info) else ():
            pairs.append((ref, self._literal(info, output.value)))
        if passes and passes[-1].end:
            for leaf in map(self.timeline.info, self._refs):
                grad = self._recorded_gradient(leaf, passes[-1].end)
                if grad is not None:
                    pairs.append((f"{self.names[leaf.node]}.grad", self._literal(leaf, grad)))
        self.tried.lines.append("")
        said = [f'    same("{name}", {name}, {text}),' for name, text in pairs]
        self.tried.do("\n".join(["results = [", *said, "]"]))
        exactly = self.timeline.framework == ENGINE  # then what is 0 but for rounding is rounded the same
        for line, fits in zip(self.tried.said, self.tried["results"], strict=True):
            if not fits or (exactly and not line.endswith(" is as recorded")):
                raise _refusal(info, f"run again, {clipped(line, 200)}")

    def _set_gradient(self, info: NodeInfo, n: int) -> None:
        """Let a leaf have the gradient that it had at that moment."""
        grad, name = self._recorded_gradient(info, n), self.names[info.node]
        if grad is not None:
            self.tried.do(f"{name}.grad = {self._literal(info, grad)}")
        elif info.created.requires_grad and self.tried[name].grad is not None:
            self.tried.do(f"{name}.grad = None")

    def _recorded_gradient(self, info: NodeInfo, n: int) -> Value | None:
        """The ``.grad`` of a leaf at a moment."""
        state = self.timeline.at(n).state(info.node)
        is_leaf = info.created.kind != "op" and info.created.requires_grad
        return state.outputs[0].grad if state is not None and is_leaf else None

    def _operation(self, info: NodeInfo) -> tuple[Op, e.NodeCreated]:
        attrs = dict(info.created.attrs)
        if VIEW in attrs or operations.is_regenerated(info.created) or info.created.during[0]:
            raise _refusal(info, "it looks into memory that was written, or a pass made it")
        if self.timeline.framework != ENGINE:
            found = in_engine_terms(self.timeline, info)
        else:
            op = recorded_operation(info.op, attrs)
            found = None if op is None else (op, info.created)
        if found is None:
            raise _refusal(info, f"{info.op.name} is no operation of gviz's engine")
        return found

    def _refer(self, info: NodeInfo) -> None:
        """Note how what the node gave is written."""
        name = self.names[info.node]
        made = self.tried[name]
        several = isinstance(made, tuple | list)
        self._refs[info.node] = [f"{name}[{nr}]" for nr in range(len(made))] if several else [name]

    def _array(self, info: NodeInfo | None, value: Value | None) -> Array:
        what = "a seed" if info is None else f"#{info.node} {clipped(info.title, 40)}"
        array = None if value is None else self.timeline.array(value)
        if array is None:
            hint = "record with --values BYTES to keep larger arrays"
            raise GvizError(f"the numbers of {what} were not stored", hint=hint, exit_code=2)
        if array.dtype.kind == "c":
            raise GvizError(f"no script is written of complex numbers, as {what} holds them", exit_code=2)
        self._elements += array.size
        if self._elements > MOST_ELEMENTS:
            raise GvizError(f"the script would hold more than {MOST_ELEMENTS:,} numbers", exit_code=2)
        return array

    def _literal(self, info: NodeInfo | None, value: Value | None, *, requires_grad: bool = False) -> str:
        array = self._array(info, value)
        return literal(array, "float32" if value is None else value.dtype, requires_grad=requires_grad)

    def _is_one(self, seed: Value) -> bool:
        array = self._array(None, seed)
        return not array.ndim and bool(array == 1)


def _place(info: NodeInfo) -> str:
    return file_line(info.frames[0].path, info.frames[0].line) if info.frames else ""


def _gives(made: Any, recorded: Sequence[Array | None], *, exactly: bool) -> bool:
    """Whether what an expression gave is what was recorded; a function may keep some of it to itself."""
    tensors = made if isinstance(made, tuple | list) else [made]
    if len(tensors) > len(recorded) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        return False
    pairs = [(tensor.detach().numpy(), array) for tensor, array in zip(tensors, recorded, strict=False)]
    return all(array is not None and _same(mine, array, exactly=exactly) for mine, array in pairs)


def _same(mine: Array, recorded: Array, *, exactly: bool) -> bool:
    if mine.shape != recorded.shape or mine.dtype != recorded.dtype:
        return False
    if exactly or mine.dtype.kind != "f":
        return np.array_equal(mine, recorded, equal_nan=mine.dtype.kind == "f")
    part = float(np.finfo(recorded.dtype).eps) ** 0.5
    largest = float(np.abs(recorded).max(initial=0.0, where=np.isfinite(recorded)))
    return bool(np.allclose(mine, recorded, rtol=part, atol=part * largest / 10, equal_nan=True))
