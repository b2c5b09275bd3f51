"""Says what is said of one node: that it was created, as what, from what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch

from gviz.adapters.pytorch import operations
from gviz.adapters.pytorch.marks import Mark
from gviz.adapters.pytorch.operations import Operation
from gviz.adapters.pytorch.outputs import Attrs, oddities, of_untracked, output
from gviz.adapters.pytorch.session import Session
from gviz.adapters.pytorch.values import as_it_lies
from gviz.events import Edge, NodeCreated, NodeKind, OpSeen, Output
from gviz.values import Value

TENSOR = OpSeen(0, "tensor", "", (), (), ())
Operand = torch.Tensor | float
Given = Sequence[tuple[torch.Tensor, int, Value]]


@dataclass(slots=True, eq=False)
class Untracked:
    """An operand that no gradient goes to, with the name of the argument it was given for.

    It is `linked` once a node that the call made has it for an input.
    """

    name: str
    operand: Operand
    linked: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call that made nodes: what it is called, its tensors and numbers in order, its other arguments by name.

    Of a function of the program `tensors` are the names of the arguments that are tensors, and `given` their numbers,
    and which version of each that was, where it is one of the first calls; empty and None of any other call. `widths`
    says how many outputs its nodes have at least, where they do not say it themselves.
    """

    name: str
    operands: Sequence[Operand]
    attrs: Attrs = ()
    in_place: bool = False
    untracked: Sequence[Untracked] = ()
    tensors: tuple[str, ...] = ()
    given: Given | None = None
    widths: Mapping[Any, int] = field(default_factory=dict)


NO_CALL = Call("", ())


def number(session: Session, value: float, dtype: torch.dtype) -> Mark:
    """Announce a Python number that became an operand."""
    mark = Mark(session.channel.next_node())
    outputs = (Output(session.value.number(value, dtype), session.channel.next_storage()),)
    say_created(
        session, mark, "tensor", TENSOR, kind="constant", inputs=(), outputs=outputs,
        attrs=(("number", True),), requires_grad=False,
    )  # fmt: skip
    return mark


def mask(session: Session, drawn: torch.Tensor) -> Mark:
    """Announce what a dropout drew within its call."""
    mark = Mark(session.channel.next_node())
    say_created(
        session, mark, "tensor", TENSOR, kind="constant", inputs=(), outputs=(output(session, drawn, 0),),
        attrs=(("mask", True), *oddities(drawn)), requires_grad=False,
    )  # fmt: skip
    return mark


def untracked(session: Session, call: Call, outputs: Sequence[torch.Tensor], why: str) -> Mark:
    """Announce an operation that autograd does not track, whose results are new tensors."""
    tensors = [operand for operand in call.operands if isinstance(operand, torch.Tensor)]
    attrs, given = call.attrs, tuple(name for name, _ in call.attrs)
    operation = operations.untracked(call.name, len(call.operands), call.in_place, given)
    if tensors and call.name.rstrip("_") in operations.CONVERSIONS:
        operation, facts = operations.conversion(operation, as_it_lies(tensors[-1]), as_it_lies(outputs[0]))
        attrs = tuple(({name: it for name, it in attrs if not name.startswith("argument")} | facts).items())
        given = tuple(name for name, _ in attrs)
    inputs, numbers = [], []
    for operand in call.operands:
        if isinstance(operand, torch.Tensor):
            inputs.append(session.edge_of(operand))
        else:
            made = number(session, operand, dtype_beside(outputs[0]))
            numbers.append(made)
            inputs.append((made.node, 0))
    origin = inputs[0][0] if tensors and why in ("detach", "data") else 0
    mark = Mark(session.channel.next_node())
    described = tuple(of_untracked(session, tensor, inputs, origin, in_place=call.in_place) for tensor in outputs)
    say_created(
        session, mark, operation, operation, kind="op", inputs=tuple(inputs), outputs=described,
        attrs=(*attrs, *operations.defaults(operation, given), *oddities(outputs[0])), requires_grad=False,
        why=why,
    )  # fmt: skip
    return mark


def switched_off() -> str:
    """By what autograd is switched off where the program is, if it is."""
    return "inference" if torch.is_inference_mode_enabled() else "no_grad"


def dtype_beside(result: torch.Tensor) -> torch.dtype:
    """The dtype in which a number took part."""
    result = as_it_lies(result)
    return result.dtype if result.is_floating_point() else torch.get_default_dtype()


def say_created(
    session: Session, mark: Mark, key: object, op: OpSeen | Operation, *, kind: NodeKind, inputs: tuple[Edge, ...],
    outputs: tuple[Output, ...], attrs: Attrs, requires_grad: bool, why: str = "",
    stack: int | None = None, given: tuple[Value | None, ...] = (),
) -> None:  # fmt: skip
    """Say that a node of this mark was made, with `why` it is not tracked, at a `stack` (None: where it runs now)."""
    channel, thread = session.channel, session.thread
    number = channel.op(key, lambda number: _numbered(op, number))
    scope = thread.scopes[-1] if thread.scopes else 0
    if stack is None:
        stack = channel.stack()
    channel.say(
        NodeCreated(
            mark.node, number, kind, inputs, outputs, attrs, requires_grad, why, stack, scope, thread.during, given
        )
    )
    mark.said(channel)


def _numbered(op: OpSeen | Operation, number: int) -> OpSeen:
    if isinstance(op, Operation):
        return op.describe(number)
    return msgspec.structs.replace(op, op=number)
