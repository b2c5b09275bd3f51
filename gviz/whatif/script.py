"""A moment of a recording as a script of its own: the leaves as they were, the operations, the passes, what they gave.

Run alone it does the arithmetic of the recording again and says whether each number is the recorded one. What cannot be
said so, a function of the program's or a hook that changed a gradient, is refused: no script is almost true.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.engine.identify import VIEW, attributes_of, recorded_operation
from gviz.engine.op import Op
from gviz.engine.tensor import new_tensor
from gviz.errors import GvizError
from gviz.plain_text import clipped, file_line
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value
from gviz.whatif import operations
from gviz.whatif.foreign import in_engine_terms
from gviz.whatif.functions import ENGINE
from gviz.whatif.wording import gives, wordings

MOST_ELEMENTS = 20_000
"""So many numbers a script holds at most."""

_HEAD = '''\
"""{what}, again: written by gviz, for PyTorch or gviz alone."""

from math import inf, nan

try:
    import torch
except ImportError:
    import gviz.engine as torch


def same(name, given, recorded):
    close = given is not None and torch.allclose(given.detach(), recorded, rtol=1e-4, atol=1e-6, equal_nan=True)
    print(f"{{name}} {{'is as recorded' if close else f'is {{given}}, recorded: {{recorded}}'}}")
    return close


'''
_TAKEN = {"torch", "inf", "nan", "same", "results"}


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
    first = min((info.born for info in infos if _is_run(info)), default=n + 1)
    writing = _Writing(timeline, first - 1)
    last = max([one.end or n for one in passes] + [infos[-1].born])
    _refuse_writes(timeline, infos, first, last)
    with emit.silence():
        for info in infos:
            writing.run(info) if _is_run(info) else writing.enter(info)
    for one in passes:
        writing.backward(one, [info for info in infos if not _is_run(info)])
    writing.compare(node, passes)
    return (
        _HEAD.format(what=f"What a recorded program computed for {writing.names[node]}")
        + "\n".join(writing.lines)
        + "\n"
    )


def _is_run(info: NodeInfo) -> bool:
    """Whether it is an operation that matters to a gradient; all else is taken as the number it was."""
    return info.created.kind == "op" and info.created.requires_grad and not info.created.untracked


def _made_from(timeline: Timeline, nodes: Iterable[int]) -> list[NodeInfo]:
    """The nodes and all that they were made from, in the order in which they were made."""
    found: dict[int, NodeInfo] = {}
    todo = [*nodes]
    while todo:
        if (node := todo.pop()) not in found:
            if not node:
                raise GvizError("an input of an operation is not known", exit_code=2)
            info = found[node] = timeline.info(node)
            todo += [source for source, _ in info.created.inputs] if _is_run(info) else []
    return sorted(found.values(), key=lambda info: (info.born, info.node))


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
    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    _tensors: dict[int, list[Any]] = field(default_factory=dict)
    _elements: int = 0

    def enter(self, info: NodeInfo) -> None:
        """A leaf, a constant, or what autograd did not follow."""
        at = max(self.start, info.born)
        values = [self.timeline.held(info.node, nr, at) for nr in range(len(info.created.outputs))]
        arrays = [self._array(info, value) for value in values]
        if dict(info.created.attrs).get("number"):
            self._tensors[info.node] = [arrays[0].item()]
            self.names[info.node] = str(arrays[0][()])
            return
        grad = info.created.kind != "op" and info.created.requires_grad
        self._tensors[info.node] = [new_tensor(np.array(array)).requires_grad_(grad) for array in arrays]
        written = [self._literal(*pair, requires_grad=grad) for pair in zip(arrays, values, strict=True)]
        self._assign(info, written[0] if len(written) == 1 else f"({', '.join(written)})")

    def run(self, info: NodeInfo) -> None:
        """An operation."""
        op, created = self._operation(info)
        if any(nr >= len(self._tensors[node]) for node, nr in created.inputs):
            raise _refusal(info, "it uses a result that PyTorch gives to nobody")
        operands = [self._tensors[node][nr] for node, nr in created.inputs]
        known = {id(self._tensors[node][nr]): self._ref(node, nr) for node, nr in created.inputs}
        recorded = [None if one.value is None else self.timeline.array(one.value) for one in created.outputs]
        exactly = self.timeline.framework == ENGINE
        for wording in wordings(op, attributes_of(op, created.attrs), operands):
            made = gives(wording, recorded, exactly=exactly)
            if made is not None:
                self._tensors[info.node] = list(made)
                self._assign(info, wording.text(known))
                return
        raise _refusal(info, f"there is no line of PyTorch for {info.op.name} that gives what was recorded")

    def backward(self, one: _Pass, leaves: Iterable[NodeInfo]) -> None:
        """A pass, from the gradients that there were."""
        event = one.event
        if event.inputs or len(event.roots) != 1:
            raise _refusal(self.timeline.info(event.roots[0][0]), "a pass was asked for some gradients, or began twice")
        for info in leaves:
            state = self.timeline.at(one.n).state(info.node)
            grad = state.outputs[0].grad if state is not None and info.created.requires_grad else None
            if grad is not None:
                self.lines.append(f"{self.names[info.node]}.grad = {self._literal(self._array(info, grad), grad)}")
        given = (
            [] if self._is_one(event.seeds[0]) else [self._literal(self._array(None, event.seeds[0]), event.seeds[0])]
        )
        given += ["create_graph=True"] if event.create_graph else ["retain_graph=True"] if event.retain_graph else []
        self.lines += ["", f"{self._ref(*event.roots[0])}.backward({', '.join(given)})"]

    def compare(self, node: int, passes: Sequence[_Pass]) -> None:
        """Hold the numbers against the recorded ones."""
        info = self.timeline.info(node)
        pairs = []
        for nr, output in enumerate(info.created.outputs[: len(self._tensors[node])] if _is_run(info) else ()):
            pairs.append((self._ref(node, nr), self._literal(self._array(info, output.value), output.value)))
        if passes and passes[-1].end:
            moment = self.timeline.at(passes[-1].end)
            for leaf in [made for made in self.names if self.timeline.info(made).created.kind != "op"]:
                state = moment.state(leaf)
                grad = state.outputs[0].grad if state is not None else None
                if grad is not None:
                    array = self._array(self.timeline.info(leaf), grad)
                    pairs.append((f"{self.names[leaf]}.grad", self._literal(array, grad)))
        self.lines += ["", "results = ["]
        self.lines += [f'    same("{name}", {name}, {literal}),' for name, literal in pairs]
        self.lines += ["]", "raise SystemExit(not all(results))"]

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

    def _assign(self, info: NodeInfo, text: str) -> None:
        self.names[info.node] = name = self._name(info)
        where = f"  # {file_line(info.frames[0].path, info.frames[0].line)}" if info.frames else ""
        self.lines.append(f"{name} = {text}{where if chr(10) not in text else ''}")

    def _name(self, info: NodeInfo) -> str:
        name = re.sub(r"\W", "_", info.name, flags=re.ASCII)
        name = f"t{name}" if name[:1].isdigit() else name
        taken = _TAKEN.union(self.names.values())
        fits = name.isidentifier() and not keyword.iskeyword(name)
        return name if fits and name not in taken else f"{name if fits else 'v'}_{info.node}"

    def _ref(self, node: int, nr: int) -> str:
        several = len(self._tensors[node]) > 1
        return f"{self.names[node]}[{nr}]" if several else self.names[node]

    def _array(self, info: NodeInfo | None, value: Value | None) -> Array:
        array = None if value is None else self.timeline.array(value)
        if array is None:
            name = "a seed" if info is None else f"#{info.node} {clipped(info.title, 40)}"
            hint = "record with --values BYTES to keep larger arrays"
            raise GvizError(f"the numbers of {name} were not stored", hint=hint, exit_code=2)
        self._elements += array.size
        if self._elements > MOST_ELEMENTS:
            raise GvizError(f"the script would hold more than {MOST_ELEMENTS:,} numbers", exit_code=2)
        return array

    def _literal(self, array: Array, value: Value | None, *, requires_grad: bool = False) -> str:
        dtype = "float32" if value is None else value.dtype
        more = "" if dtype in ("float32", "int64", "bool") and array.size else f", dtype=torch.{dtype}"
        more += ", requires_grad=True" if requires_grad else ""
        text = f"torch.tensor({_numbers(array)}{more})"
        return text if len(text) < 100 else "\n    ".join(textwrap.wrap(text, 110, break_long_words=False))

    def _is_one(self, seed: Value) -> bool:
        array = self._array(None, seed)
        return not array.ndim and bool(array == 1)


def _numbers(array: Array) -> str:
    """Elements with the digits that tell them from all others of their dtype."""
    return f"[{', '.join(_numbers(part) for part in array)}]" if array.ndim else str(array[()])
